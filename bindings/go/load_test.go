package optima

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissingLibrary runs this program again without a library.
func TestMissingLibrary(t *testing.T) {
	program := must[string](t)(os.Executable())
	child := exec.Command(program, "-test.run=^TestChildWithoutALibrary$")
	child.Env = append(os.Environ(), childVariable+"=1", "LD_LIBRARY_PATH=")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	for _, part := range []string{LibraryName, filepath.Join(filepath.Dir(program), LibraryName),
		"no such file", "cannot open shared object file"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not name %q", line, part)
		}
	}
}

func TestChildWithoutALibrary(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		t.Skip("only inside TestMissingLibrary")
	}
	_, err := NewEngine(nil)
	var missing *LoadError
	if !errors.As(err, &missing) || len(missing.Looked) != 2 ||
		strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v: no *LoadError of one line with two places", err)
	}
	fmt.Println(err)
	wrong := filepath.Join(t.TempDir(), LibraryName)
	if err := Load(wrong); !errors.As(err, &missing) || !strings.Contains(err.Error(), wrong) {
		t.Fatalf("%v: does not name %s", err, wrong)
	}
	if err := os.WriteFile(wrong, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Load(wrong); !errors.As(err, &missing) || !strings.Contains(err.Error(), wrong) {
		t.Fatalf("%v: does not name %s", err, wrong)
	}
	// Another place may be tried afterwards.
	if err := Load(os.Getenv(libraryVariable)); err != nil {
		t.Fatal(err)
	}
	engine := must[*Engine](t)(NewEngine(nil))
	engine.Close()
}

func TestLoadedOnce(t *testing.T) {
	err := Load(os.Getenv(libraryVariable))
	if !errors.Is(err, StatusState) {
		t.Errorf("got %v", err)
	}
	version := must[string](t)(Version())
	equal(t, "version", version, Release)
	features := must[Feature](t)(Features())
	if features&FeatureGGUF == 0 || features&FeatureGrammar == 0 {
		t.Errorf("features %x", features)
	}
	report := must[ProbeReport](t)(Probe(ProbeOptions{}))
	if report.Threads < 1 || report.ISA == "" {
		t.Errorf("%+v", report)
	}
}
