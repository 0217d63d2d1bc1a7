package main

import (
	"archive/tar"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/utils"
)

// writeImageSBOM writes the SBOM of the image: the modules of its programs, and the files in the image for each
// architecture.
func (r *release) writeImageSBOM(index v1.ImageIndex, programs []*debug.BuildInfo) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	document := r.sbom(r.name("image"), "CONTAINER", digest.Hex, programs)
	base := r.repository[strings.LastIndexByte(r.repository, '/')+1:]
	document.Packages[0].PackageExternalReferences = []*v2_3.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: "pkg:oci/" + base + "@" + url.QueryEscape(digest.String()) + "?repository_url=" +
			url.QueryEscape(r.repository),
	}}
	for _, m := range manifest.Manifests {
		one, err := index.Image(m.Digest)
		if err == nil {
			err = r.addFiles(document, one, m)
		}
		if err != nil {
			return fmt.Errorf("list the files of the image for %s: %w", m.Platform, err)
		}
	}
	return r.writeDocument(document)
}

// addFiles adds a package for the image of one architecture, with its files.
func (r *release) addFiles(document *v2_3.Document, image v1.Image, m v1.Descriptor) error {
	id := "image-" + m.Platform.OS + "-" + m.Platform.Architecture
	files, err := filesIn(image, id)
	if err != nil {
		return err
	}
	code, err := utils.GetVerificationCode(files, "")
	if err != nil {
		return err
	}
	document.Packages = append(document.Packages, &v2_3.Package{
		PackageName: "quorate for " + m.Platform.String(), PackageSPDXIdentifier: common.ElementID(id),
		PackageVersion: r.version, PackageDownloadLocation: unsaid, FilesAnalyzed: true, PackageVerificationCode: &code,
		PackageChecksums:       []common.Checksum{{Algorithm: common.SHA256, Value: m.Digest.Hex}},
		PackageLicenseDeclared: "Apache-2.0", PackageLicenseConcluded: unsaid, PackageCopyrightText: unsaid,
		PrimaryPackagePurpose: "CONTAINER",
	})
	document.Relationships = append(document.Relationships,
		relation("quorate", common.TypeRelationshipContains, common.ElementID(id)))
	for _, file := range files {
		document.Files = append(document.Files, file)
		document.Relationships = append(document.Relationships,
			relation(common.ElementID(id), common.TypeRelationshipContains, file.FileSPDXIdentifier))
	}
	return nil
}

// filesIn returns the files in an image with their checksums.
func filesIn(image v1.Image, id string) (files []*v2_3.File, err error) {
	content := mutate.Extract(image)
	defer func() { err = errors.Join(err, content.Close()) }()
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		short, long := sha1.New(), sha256.New() // SPDX requires SHA-1
		if _, err := io.Copy(io.MultiWriter(short, long), archive); err != nil {
			return nil, err
		}
		files = append(files, &v2_3.File{
			FileName:           "./" + header.Name,
			FileSPDXIdentifier: common.ElementID(fmt.Sprintf("%s-file-%d", id, len(files))),
			Checksums: []common.Checksum{
				{Algorithm: common.SHA1, Value: hex.EncodeToString(short.Sum(nil))},
				{Algorithm: common.SHA256, Value: hex.EncodeToString(long.Sum(nil))},
			},
			LicenseConcluded: unsaid, FileCopyrightText: unsaid,
		})
	}
}
