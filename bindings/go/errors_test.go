package optima

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// of returns the library's error.
func of(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	return e
}

func TestWrongPath(t *testing.T) {
	w := newWorld(t, nil)
	_, err := w.engine.OpenModel(ctx, "/no/such/model.gguf", nil)
	e := of(t, err)
	equal(t, "status", e.Status, StatusIO)
	if !strings.Contains(err.Error(), "/no/such/model.gguf") {
		t.Errorf("%v: names no file", err)
	}
}

func TestContextFullHasBothNumbers(t *testing.T) {
	w := newWorld(t, nil)
	s := must[*Session](t)(w.model.NewSession(&SessionOptions{ContextTokens: 64}))
	defer s.Close()
	_, err := s.Generate(ctx, &Request{PromptIDs: w.longPrompt(65)})
	e := of(t, err)
	equal(t, "status", e.Status, StatusContextFull)
	equal(t, "is", errors.Is(err, StatusContextFull), true)
	equal(t, "wanted", e.Wanted, int64(65))
	equal(t, "limit", e.Limit, int64(64))
	if !strings.Contains(e.Message, "65") || !strings.Contains(e.Message, "64") {
		t.Error(e)
	}
	stream := must[*Stream](t)(s.Stream(ctx, &Request{PromptIDs: w.longPrompt(16), MaxTokens: 1}))
	must[*Result](t)(stream.Result())
	if _, err := s.Stream(ctx, &Request{PromptIDs: w.longPrompt(65)}); !errors.Is(err,
		StatusContextFull) {
		t.Errorf("stream: %v", err)
	}
}

func TestDeadlineHasNumbers(t *testing.T) {
	w := newWorld(t, nil)
	request := w.endless()
	request.MaxTokens = 1 << 40
	for _, left := range []time.Duration{20 * time.Millisecond, -time.Second} {
		late, cancel := context.WithTimeout(ctx, left)
		r, err := w.session.Generate(late, request)
		if err == nil {
			t.Fatal("no error")
		}
		e := of(t, err)
		equal(t, "status", e.Status, StatusDeadline)
		equal(t, "is", errors.Is(err, context.DeadlineExceeded), true)
		equal(t, "wanted", e.Wanted, int64(request.MaxTokens))
		equal(t, "available", e.Available, int64(len(r.TokenIDs)))
		if want := left.Milliseconds(); e.Limit < 1 || want > 0 && e.Limit > want {
			t.Errorf("limit %d, the deadline was %d ms away", e.Limit, want)
		}
		stream := must[*Stream](t)(w.session.Stream(late, request))
		if _, err := stream.Result(); !errors.Is(err, StatusDeadline) {
			t.Errorf("stream: %v", err)
		}
		cancel()
	}
	w.works(t, w.session)
}

func TestBadRequestsAreRefused(t *testing.T) {
	w := newWorld(t, nil)
	_, err := w.session.Generate(ctx, &Request{Prompt: "a", TopP: 7})
	equal(t, "status", of(t, err).Status, StatusArg)
	_, err = w.session.Stream(ctx, &Request{Prompt: "a", OnEvent: func(Event) error { return nil }})
	equal(t, "status", of(t, err).Status, StatusArg)
	_, err = NewEngine(&EngineOptions{Threads: -1})
	equal(t, "status", of(t, err).Status, StatusArg)
	running := must[*Stream](t)(w.session.Stream(ctx, w.endless()))
	defer running.Close()
	_, err = w.session.Generate(ctx, w.request())
	equal(t, "status", of(t, err).Status, StatusBusy)
}

func TestOpeningCanBeEnded(t *testing.T) {
	w := newWorld(t, nil)
	path := goldenFile("tiny/" + tiny + ".gguf")
	mine := errors.New("mine")
	options := &ModelOptions{Progress: func(float32) error { return mine }}
	if _, err := w.engine.OpenModel(ctx, path, options); !errors.Is(err, mine) {
		t.Errorf("progress: %v", err)
	}
	options.Progress = func(float32) error { panic(7) }
	equal(t, "panic", panicOf(func() { w.engine.OpenModel(ctx, path, options) }), any(7))
	cancellable, cancel := context.WithCancel(ctx)
	options.Progress = func(float32) error { cancel(); return nil }
	for i := 0; i < 2; i++ { // During the opening, then before it.
		_, err := w.engine.OpenModel(cancellable, path, options)
		if i == 1 && !errors.Is(err, context.Canceled) {
			t.Errorf("context: %v", err)
		}
	}
	truncated := strings.NewReader("GGUF")
	if _, err := w.engine.OpenModelReader(ctx, truncated, 1000, nil); err == nil {
		t.Error("a reader that ends early was accepted")
	}
}

func TestModelsFromFilesAndReaders(t *testing.T) {
	w := newWorld(t, nil)
	path := goldenFile("tiny/" + tiny + ".gguf")
	file := must[*os.File](t)(os.Open(path))
	defer file.Close()
	info := must[os.FileInfo](t)(file.Stat())
	for _, open := range []func() (*Model, error){
		func() (*Model, error) { return w.engine.OpenModelFile(ctx, file, 0, 0, nil) },
		func() (*Model, error) { return w.engine.OpenModelReader(ctx, file, info.Size(), nil) },
	} {
		m := must[*Model](t)(open())
		s := must[*Session](t)(m.NewSession(nil))
		w.works(t, s)
		m.Close()
		w.works(t, s) // The session keeps what it needs.
		s.Close()
	}
}

func TestStatusNamesAreThoseOfTheLibrary(t *testing.T) {
	for status := Status(0); status >= StatusUnsupported; status-- {
		equal(t, "status", status.String(), cString(cStatusName(status)))
	}
	for finish := FinishNone; finish <= FinishEmbedded; finish++ {
		equal(t, "finish", finish.String(), cString(cFinishName(finish)))
	}
	equal(t, "unknown", Finish(99).String(), cString(cFinishName(99)))
}
