package optima

import (
	"context"
	"sync"
)

// latch stops the request that names it, also before its start.
type latch struct {
	mutex   sync.Mutex
	pointer *cCancel // nil once closed.
	ended   chan struct{}
}

func newLatch(op string) (*latch, error) {
	var pointer *cCancel
	var why *cError
	status := cCancelCreate(&pointer, &why)
	return &latch{pointer: pointer, ended: make(chan struct{})}, toError(op, status, why)
}

func (l *latch) trigger() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.pointer != nil {
		cCancelTrigger(l.pointer)
	}
}

// follow triggers the latch when the context is cancelled. Its deadline, unless it has passed
// already, is the library's to keep.
func (l *latch) follow(ctx context.Context) {
	if ctx.Err() != nil {
		l.trigger()
	} else if ctx.Done() != nil {
		go func() {
			select {
			case <-ctx.Done():
				if ctx.Err() == context.Canceled {
					l.trigger()
				}
			case <-l.ended:
			}
		}()
	}
}

func (l *latch) close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	cCancelDestroy(l.pointer)
	l.pointer = nil
	close(l.ended)
}
