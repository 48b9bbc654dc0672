package optima

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// Stream is a request in work whose output is taken piece by piece: by Next, as a channel (Events)
// or as the text's bytes (Read); one of the three. What is not taken waits in memory and never
// holds the engine up. A stream whose output is not read to its end should be closed.
type Stream struct {
	call
	ctx     context.Context
	session *Session

	mutex     sync.Mutex
	changed   *sync.Cond // queue or done.
	submitted *cRequest  // nil before it is submitted and once it is done.
	queue     []Event
	done      bool
	result    *Result
	err       error
	// told is set with done, for release, which may come while the mutex is held.
	told atomic.Bool

	event Event  // Of Next.
	rest  string // Text that Read has not given yet.
	gone  chan struct{}
	close sync.Once
}

// Stream starts a request and returns. The context cancels it, and its deadline ends it; the
// engine's own goroutine polls for all streams, so that many cost no thread each. StatusBusy while
// the session runs another request. Request.OnEvent must be nil.
func (s *Session) Stream(ctx context.Context, request *Request) (*Stream, error) {
	const op = "stream"
	if request.OnEvent != nil {
		return nil, newError(StatusArg, op, "OnEvent must be nil: the events come from the stream")
	}
	pointer, err := s.handle.enter(op)
	if err != nil {
		return nil, err
	}
	defer s.handle.leave()
	c, err := s.prepare(ctx, op, request)
	if err != nil {
		return nil, err
	}
	t := &Stream{call: *c, ctx: ctx, session: s, gone: make(chan struct{})}
	t.changed = sync.NewCond(&t.mutex)
	t.expect(t)
	engine := s.model.engine
	engine.begin(t)
	var submitted *cRequest // C writes into a variable of its own, not among pointers of Go.
	var why *cError
	t.mutex.Lock() // Its end may be polled before the call returns.
	status := cSubmit(pointer, t.desc, &submitted, &why)
	t.submitted = submitted
	if err := toError(op, status, why); err != nil {
		t.told.Store(true)
		t.mutex.Unlock()
		engine.end(t)
		s.finish(&t.call)
		return nil, err
	}
	t.mutex.Unlock()
	engine.submitted()
	return t, nil
}

// deliver takes an event that was polled.
func (t *Stream) deliver(event *cEvent) {
	if event.type_ == EventDone {
		t.end()
		return
	}
	taken := newEvent(event)
	t.mutex.Lock()
	t.queue = append(t.queue, taken)
	t.mutex.Unlock()
	t.changed.Signal()
}

// end takes the result of the request and lets go of it.
func (t *Stream) end() {
	t.mutex.Lock()
	if t.done || t.submitted == nil {
		t.mutex.Unlock()
		return
	}
	var result *cResult
	var why *cError
	status := cRequestResult(t.submitted, &result, &why)
	t.result, t.err = t.outcome(t.ctx, "stream", status, result, why)
	cRequestDestroy(t.submitted)
	t.submitted = nil
	t.done = true
	t.told.Store(true)
	t.session.finish(&t.call)
	t.mutex.Unlock()
	t.changed.Broadcast()
	t.session.model.engine.end(t)
}

// release is C's last word. Without an end before it the engine has gone with the events.
func (t *Stream) release() {
	if !t.told.Load() {
		go t.end() // Not here: the engine may be inside its own end.
	}
}

// take waits for the next event; false at the end.
func (t *Stream) take() (Event, bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for len(t.queue) == 0 && !t.done {
		t.changed.Wait()
	}
	if len(t.queue) == 0 {
		t.rethrow()
		return Event{}, false
	}
	event := t.queue[0]
	t.queue[0] = Event{}
	t.queue = t.queue[1:]
	return event, true
}

// Next waits for the next event, which Event gives; false at the end, when Result has the rest.
func (t *Stream) Next() bool {
	event, more := t.take()
	t.event = event
	return more
}

// Event is the one that the last call of Next waited for.
func (t *Stream) Event() Event { return t.event }

// Events gives the events as a channel, which is closed at the end; Result then has the rest. When
// the context ends or the stream is closed, events that were not taken are dropped.
func (t *Stream) Events() <-chan Event {
	events := make(chan Event)
	go func() {
		defer close(events)
		for {
			event, more := t.takeQuietly()
			if !more {
				return
			}
			select {
			case events <- event:
			case <-t.ctx.Done():
				return
			case <-t.gone:
				return
			}
		}
	}()
	return events
}

// takeQuietly leaves what a callback panicked with to Result: this is no goroutine of the host's.
func (t *Stream) takeQuietly() (Event, bool) {
	t.mutex.Lock()
	for len(t.queue) == 0 && !t.done {
		t.changed.Wait()
	}
	empty := len(t.queue) == 0
	t.mutex.Unlock()
	if empty {
		return Event{}, false
	}
	return t.take()
}

// Read gives the output's text, whole code points a token. io.EOF when it has ended by itself, the
// error otherwise.
func (t *Stream) Read(into []byte) (int, error) {
	for t.rest == "" && len(into) > 0 {
		event, more := t.take()
		if !more {
			if _, err := t.Result(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		t.rest = event.Text
	}
	n := copy(into, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Result waits for the end. A cancelled or late request has a result and an error, as with
// Session.Generate.
func (t *Stream) Result() (*Result, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for !t.done {
		t.changed.Wait()
	}
	t.rethrow()
	return t.result, t.err
}

// Cancel ends the request; the session keeps the tokens so far. What came before can still be
// taken.
func (t *Stream) Cancel() { t.latch.trigger() }

// Close cancels the request when it still runs and waits until the session is free; with
// DriveHost, where Step does the rest, it does not wait. Closing again does nothing.
func (t *Stream) Close() error {
	t.close.Do(func() { close(t.gone) })
	t.latch.trigger()
	if t.session.model.engine.drive == DriveHost {
		return nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for !t.done {
		t.changed.Wait()
	}
	return nil
}
