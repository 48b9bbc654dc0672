package optima

// #cgo CFLAGS: -std=gnu99 -O2
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "load.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

// LibraryName is what the shared library is called.
const LibraryName = "libsitsoptima.so.1"

// LoadError says that the shared library was not found, or could not be loaded.
type LoadError struct {
	// Looked holds each place that was looked at and why it was not taken, in order.
	Looked []string
}

func (e *LoadError) Error() string {
	text := "optima: " + LibraryName + " not loaded: looked for "
	for i, place := range e.Looked {
		if i > 0 {
			text += "; then for "
		}
		text += place
	}
	return text
}

var library struct {
	mutex  sync.Mutex
	loaded bool
}

// Load loads the shared library at this path and no other. Without it, the first call that needs
// the library loads the first of: LibraryName in the folder of the running program; what the
// system's loader finds by that name (LD_LIBRARY_PATH, ld.so.conf). The library stays loaded until
// the process ends; once it is loaded, Load is an error (StatusState).
func Load(path string) error {
	library.mutex.Lock()
	defer library.mutex.Unlock()
	if library.loaded {
		return &Error{Status: StatusState, Op: "load", Message: "a library is loaded already",
			Wanted: -1, Available: -1, Limit: -1}
	}
	absolute, err := filepath.Abs(path) // A name without a slash would be searched for.
	if err != nil {
		return &LoadError{Looked: []string{fmt.Sprintf("%s (%v)", path, err)}}
	}
	why, err := open(absolute)
	if why != "" {
		return &LoadError{Looked: []string{fmt.Sprintf("%s (%s)", path, why)}}
	}
	return err
}

// load finds the library once.
func load() error {
	library.mutex.Lock()
	defer library.mutex.Unlock()
	if library.loaded {
		return nil
	}
	var looked []string
	for _, name := range places() {
		if _, err := os.Stat(name); name != LibraryName && err != nil {
			looked = append(looked, name+" (no such file)")
			continue
		}
		why, err := open(name)
		if why == "" {
			return err
		}
		looked = append(looked, fmt.Sprintf("%s (%s)", name, why))
		if name != LibraryName { // What is there but does not load is an error, not passed over.
			break
		}
	}
	return &LoadError{Looked: looked}
}

func places() []string {
	program, err := os.Executable()
	if err != nil {
		return []string{LibraryName}
	}
	return []string{filepath.Join(filepath.Dir(program), LibraryName), LibraryName}
}

// open returns why a file could not be loaded, or an error about what was loaded.
func open(name string) (string, error) {
	file := C.CString(name)
	defer C.free(unsafe.Pointer(file))
	var table *C.optima_api_v1
	if why := C.optima_go_load(file, cABI, &table); why != nil {
		defer C.free(unsafe.Pointer(why))
		return C.GoString(why), nil
	}
	if table == nil {
		return "", &Error{Status: StatusVersion, Op: "load",
			Message: fmt.Sprintf("%s: has no ABI %d", name, cABI),
			Wanted:  cABI, Available: -1, Limit: -1}
	}
	wanted, found := int64(unsafe.Sizeof(*table)), int64(table.struct_size)
	C.optima_go_use(table)
	if found < wanted {
		release := cString(cVersion())
		C.optima_go_use(nil)
		return "", &Error{Status: StatusVersion, Op: "load", Message: fmt.Sprintf(
			"%s: release %s is older than %s, which this package needs: its function table has "+
				"%d bytes, %d are wanted", name, release, Release, found, wanted),
			Wanted: wanted, Available: found, Limit: -1}
	}
	library.loaded = true
	return "", nil
}

// calloc gives zeroed memory of C.
func calloc(bytes uintptr) unsafe.Pointer {
	block := C.calloc(1, C.size_t(bytes))
	if block == nil {
		panic("optima: out of memory") // As Go does for its own memory.
	}
	return block
}

func cfree(block unsafe.Pointer) { C.free(block) }
