package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsInURLsAreNotPrinted checks that no command prints a password that a source's URL contains by mistake, even
// if the password contains a comma. Commas separate the settings of a source.
func TestSecretsInURLsAreNotPrinted(t *testing.T) {
	for _, url := range []string{
		"https://user:123,SECRETxyz@git.example.com/r.git", "https://tok,SECRETxyz@git.example.com/r.git",
		"https://tok,SECRETxyz=1@git.example.com/r.git", "https://user:123,branch=SECRETxyz@git.example.com/r.git",
		"ssh://user:123,SECRETxyz@git.example.com/r.git", "HTTPS://user:SECRETxyz@git.example.com/r.git",
		"https://user:SECRETxyz@git.example.com/r.git,path=a", "user:SECRETxyz@git.example.com/r.git",
		"ssh://git:SECRETxyz@git.example.com/r.git",
	} {
		config := "apiVersion: config.quorate.dev/v1alpha1\nkind: Configuration\nsources:\n- location: \"" + url + "\"\n"
		file := filepath.Join(filesIn(t, "quorate.yaml", config), "quorate.yaml")
		for _, args := range [][]string{
			{"validate", "--source", url}, {"plan", "--source", url, "--against", "main"}, {"validate", "--config", file},
			{"install", "--mode", "loop", "--image", "a:v1", "--source", url, "--print"},
			{"install", "--mode", "loop", "--image", "a:v1", "--config", file, "--print"},
		} {
			var printed bytes.Buffer
			if code := execute(t.Context(), args, streams{out: &printed, err: &printed}); code == exitOK || strings.Contains(printed.String(), "SECRETxyz") {
				t.Errorf("%s: %s: exit code %d: %s", args[0], url, code, printed.String())
			}
		}
	}
}

// TestInstallChecksEmptyLists checks that an empty list in a configuration file is either ignored or refused.
func TestInstallChecksEmptyLists(t *testing.T) {
	for setting, refused := range map[string]bool{
		"loop: {listen: []}": false, "sourceDefaults: {branch: []}": true, "sourceDefaults: {path: []}": true,
	} {
		config := "apiVersion: config.quorate.dev/v1alpha1\nkind: Configuration\nsources:\n- location: https://git.example.com/r.git\n" + setting + "\n"
		file := filepath.Join(filesIn(t, "quorate.yaml", config), "quorate.yaml")
		var printed bytes.Buffer
		args := []string{"install", "--mode", "loop", "--image", "a:v1", "--config", file, "--print"}
		if code := execute(t.Context(), args, streams{out: &printed, err: &printed}); (code != exitOK) != refused || strings.Contains(printed.String(), "the list is empty") != refused {
			t.Errorf("%s: exit code %d: %.300s", setting, code, printed.String())
		}
	}
}
