package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsFile lists the checksums of all other files in the format of sha256sum, so that signing it signs all files.
const sumsFile = "SHA256SUMS"

// sumOf returns the checksum of a file.
func sumOf(file string) (string, error) {
	content, err := os.Open(filepath.Clean(file))
	if err != nil {
		return "", fmt.Errorf("compute the checksums: %w", err)
	}
	defer content.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return "", fmt.Errorf("compute the checksum of %s: %w", file, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// sums returns the checksum lines for the files in a directory.
func sums(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the files of the release: %w", err)
	}
	var lines []string
	for _, file := range files {
		if file.Name() == sumsFile || strings.HasPrefix(file.Name(), sumsFile+".") { // the checksums or a signature
			continue
		}
		sum, err := sumOf(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		lines = append(lines, sum+"  "+file.Name())
	}
	return lines, nil
}

func writeSums(dir string) error {
	lines, err := sums(dir)
	if err != nil {
		return err
	}
	text := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, sumsFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	return nil
}

// checkSums reads all files again, and reports files that differ, are missing, or are not listed.
func checkSums(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return fmt.Errorf("read the checksums: %w", err)
	}
	there, err := sums(dir)
	if err != nil {
		return err
	}
	listed := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	var problems error
	for _, line := range listed {
		if !slices.Contains(there, line) {
			problems = errors.Join(problems, fmt.Errorf("no file matches the listed checksum: %s", line))
		}
	}
	for _, line := range there {
		if !slices.Contains(listed, line) {
			problems = errors.Join(problems, fmt.Errorf("%s does not list this file: %s", sumsFile, line))
		}
	}
	return problems
}
