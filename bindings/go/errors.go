package optima

import (
	"context"
	"errors"
)

// Error is a failure of the library. errors.Is(err, StatusContextFull) asks for its kind;
// a cancelled or late call also is context.Canceled or context.DeadlineExceeded.
type Error struct {
	Status  Status
	Op      string // What was called.
	Message string // English, with the numbers.
	// Bytes, tokens or what the message speaks of: what was wanted, what there was, and the limit
	// that was met. -1 = does not apply.
	Wanted, Available, Limit int64
}

func (e *Error) Error() string {
	return "optima: " + e.Op + ": " + e.Message + " (" + e.Status.String() + ")"
}

// Unwrap gives the Status.
func (e *Error) Unwrap() error { return e.Status }

// Error is the status's name.
func (v Status) Error() string { return "optima: " + v.String() }

// Is knows the errors of package context.
func (v Status) Is(target error) bool {
	return v == StatusCancelled && target == context.Canceled ||
		v == StatusDeadline && target == context.DeadlineExceeded
}

// Stop is what a callback returns to end the output there and keep it.
var Stop = errors.New("optima: stop")

func newError(status Status, op, message string) *Error {
	return &Error{Status: status, Op: op, Message: message, Wanted: -1, Available: -1, Limit: -1}
}

// toError makes the error of a call and frees the C object; nil for success.
func toError(op string, status Status, why *cError) error {
	if status == StatusOK {
		return nil
	}
	if why == nil { // No memory was left for it.
		return newError(status, op, status.String())
	}
	defer cErrorDestroy(why)
	return &Error{Status: status, Op: op, Message: cString(cErrorMessage(why)),
		Wanted: cErrorWanted(why), Available: cErrorAvailable(why), Limit: cErrorLimit(why)}
}

// carrier takes what a callback of the host throws across C to the goroutine that called.
type carrier struct {
	panicked bool
	value    any
	err      error
}

// run reports whether the callback returned nil.
func (c *carrier) run(callback func() error) bool {
	finished := false
	defer func() {
		if !finished {
			c.panicked, c.value = true, recover()
		}
	}()
	c.err = callback()
	finished = true
	return c.err == nil
}

// rethrow panics with what a callback panicked with.
func (c *carrier) rethrow() {
	if c.panicked {
		panic(c.value)
	}
}

// onLibraryThread runs a callback that no call waits for. Its panic ends the program, as in any
// goroutine, instead of unwinding frames of C.
func onLibraryThread(callback func()) {
	var c carrier
	c.run(func() error { callback(); return nil })
	if c.panicked {
		go panic(c.value)
		select {}
	}
}
