package optima

import "sync"

// handle is a C object with the calls that are inside it: it is destroyed when it has been closed
// and the last of them has left, so that no call ever works on freed memory.
type handle[T any] struct {
	what    string
	destroy func(*T)

	mutex   sync.Mutex
	pointer *T
	calls   int
	closed  bool
}

func newHandle[T any](what string, pointer *T, destroy func(*T)) handle[T] {
	return handle[T]{what: what, pointer: pointer, destroy: destroy}
}

// enter gives the object to a call, which must leave.
func (h *handle[T]) enter(op string) (*T, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.closed {
		return nil, newError(StatusState, op, "the "+h.what+" is closed")
	}
	h.calls++
	return h.pointer, nil
}

func (h *handle[T]) leave() {
	h.mutex.Lock()
	h.calls--
	last := h.closed && h.calls == 0
	h.mutex.Unlock()
	if last {
		h.destroy(h.pointer)
	}
}

// close reports whether it was open.
func (h *handle[T]) close() bool {
	h.mutex.Lock()
	was := h.closed
	h.closed = true
	last := !was && h.calls == 0
	h.mutex.Unlock()
	if last {
		h.destroy(h.pointer)
	}
	return !was
}

// use runs one call of C on the object and makes its error.
func use[T any](h *handle[T], op string, call func(*T, **cError) Status) error {
	pointer, err := h.enter(op)
	if err != nil {
		return err
	}
	defer h.leave()
	var why *cError
	return toError(op, call(pointer, &why), why)
}
