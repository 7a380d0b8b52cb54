// Gomodule lays out a Go module as a module proxy serves it: `gomodule FOLDER VERSION TIME OUT`.
//
// FOLDER holds go.mod, TIME is in seconds since 1970, and the files come below OUT.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: gomodule FOLDER VERSION TIME OUT")
	}
	if err := layOut(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		log.Fatalf("gomodule: %v", err)
	}
}

func layOut(folder, version, seconds, out string) error {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	made, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the time is not a number of seconds: %w", err)
	}
	path := modfile.ModulePath(text)
	escaped, err := module.EscapePath(path)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(made, 0).UTC()})
	if err != nil {
		return err
	}
	return write(filepath.Join(out, escaped, "@v"), folder, module.Version{Path: path, Version: version}, map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": info,
		version + ".mod":  text,
	})
}

// write fills the folder of one version: the zip of the module, and the small files beside it.
func write(versions, folder string, of module.Version, files map[string][]byte) error {
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(versions, name), text, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(versions, of.Version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(archive, of, folder); err != nil {
		return err
	}
	return archive.Close()
}
