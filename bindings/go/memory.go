package optima

import "unsafe"

// arena is memory of C that a description and all it points at live in: C gets no Go pointer.
type arena struct{ blocks []unsafe.Pointer }

func (a *arena) alloc(bytes uintptr) unsafe.Pointer {
	block := calloc(bytes + 1) // Never nothing: NULL has a meaning of its own.
	a.blocks = append(a.blocks, block)
	return block
}

func (a *arena) free() {
	for _, block := range a.blocks {
		cfree(block)
	}
	a.blocks = nil
}

// place makes one zeroed T. Only integers, floats and pointers of C may go into it.
func place[T any](a *arena) *T {
	var zero T
	return (*T)(a.alloc(unsafe.Sizeof(zero)))
}

// list copies values that hold no pointers; nil stays nil.
func list[T any](a *arena, values []T) (*T, uintptr) {
	if values == nil {
		return nil, 0
	}
	var zero T
	first := (*T)(a.alloc(uintptr(len(values)) * unsafe.Sizeof(zero)))
	copy(unsafe.Slice(first, len(values)), values)
	return first, uintptr(len(values))
}

func (a *arena) text(s string) (*byte, uintptr) {
	first := (*byte)(a.alloc(uintptr(len(s))))
	copy(unsafe.Slice(first, len(s)), s)
	return first, uintptr(len(s))
}

// optional is NULL for "".
func (a *arena) optional(s string) (*byte, uintptr) {
	if s == "" {
		return nil, 0
	}
	return a.text(s)
}

func (a *arena) texts(all []string) (texts **byte, lengths *uintptr) {
	if len(all) == 0 {
		return nil, nil
	}
	const word = unsafe.Sizeof(uintptr(0))
	texts = (**byte)(a.alloc(uintptr(len(all)) * word))
	lengths = (*uintptr)(a.alloc(uintptr(len(all)) * word))
	for i, s := range all {
		unsafe.Slice(texts, len(all))[i], unsafe.Slice(lengths, len(all))[i] = a.text(s)
	}
	return texts, lengths
}

// cString copies a NUL-terminated string; "" for NULL.
func cString(text *byte) string {
	if text == nil {
		return ""
	}
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(text), length)) != 0 {
		length++
	}
	return cText(text, int64(length))
}

func cText(text *byte, bytes int64) string { return string(unsafe.Slice(text, bytes)) }

// cList copies an array of C; nil for NULL.
func cList[T any](first *T, count int64) []T {
	return append([]T(nil), unsafe.Slice(first, count)...)
}
