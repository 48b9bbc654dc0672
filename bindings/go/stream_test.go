package optima

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// idsOf takes a stream by Next.
func idsOf(s *Stream) (ids []int32) {
	for s.Next() {
		if s.Event().Type == EventToken {
			ids = append(ids, s.Event().Token)
		}
	}
	return ids
}

func TestStreamByEveryWay(t *testing.T) {
	w := newWorld(t, nil)
	whole := must[*Result](t)(w.session.Generate(ctx, w.forcing()))
	equal(t, "text", whole.Text, forced)

	next := must[*Stream](t)(w.session.Stream(ctx, w.forcing()))
	equal(t, "next", idsOf(next), whole.TokenIDs)
	equal(t, "next at the end", next.Next(), false)
	equal(t, "result", must[*Result](t)(next.Result()).Text, forced)

	channel := must[*Stream](t)(w.session.Stream(ctx, w.forcing()))
	text, done := "", int64(0)
	for event := range channel.Events() {
		text += event.Text
		if event.Type == EventPrefill {
			done = event.TokensDone
			equal(t, "total", event.TokensTotal, int64(len(whole.PromptIDs)))
		}
	}
	equal(t, "channel", text, forced)
	equal(t, "prefill", done, int64(len(whole.PromptIDs)))
	equal(t, "finish", must[*Result](t)(channel.Result()).Finish, FinishStop)

	// Three bytes at a time: code points are cut by the reader's buffer, none is lost.
	reader := must[*Stream](t)(w.session.Stream(ctx, w.forcing()))
	small, read := make([]byte, 3), []byte{}
	for {
		n, err := reader.Read(small)
		read = append(read, small[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "reader", string(read), forced)
	reader.Close()
	w.works(t, w.session)
}

func TestManyStreamsAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	var all sync.WaitGroup
	for i := 0; i < 16; i++ {
		s := w.newSession(t)
		all.Add(1)
		go func() {
			defer all.Done()
			for turn := 0; turn < 3; turn++ {
				stream, err := s.Stream(ctx, w.request())
				if err != nil {
					t.Error(err)
					return
				}
				equal(t, "ids", idsOf(stream), w.golden.ContinuationIDs)
			}
		}()
	}
	all.Wait()
	waitFor(t, "the end of polling", func() bool {
		w.engine.mutex.Lock()
		defer w.engine.mutex.Unlock()
		return len(w.engine.streams) == 0 && w.engine.pending == 0 && !w.engine.polling
	})
}

func TestStreamsEndByCancelCloseAndContext(t *testing.T) {
	w := newWorld(t, nil)
	for name, end := range map[string]func(*Stream, context.CancelFunc){
		"cancel":  func(s *Stream, _ context.CancelFunc) { s.Cancel() },
		"close":   func(s *Stream, _ context.CancelFunc) { s.Close() },
		"context": func(_ *Stream, cancel context.CancelFunc) { cancel() },
		"session": func(s *Stream, _ context.CancelFunc) { s.session.Close() },
	} {
		session := w.newSession(t)
		cancellable, cancel := context.WithCancel(ctx)
		stream := must[*Stream](t)(session.Stream(cancellable, w.endless()))
		for stream.Next() && stream.Event().Type != EventToken {
		}
		end(stream, cancel)
		r, err := stream.Result()
		if !errors.Is(err, StatusCancelled) || r == nil || len(r.TokenIDs) == 0 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		cancel()
		stream.Close()
		if name != "session" {
			w.works(t, session)
		}
	}
	reader := must[*Stream](t)(w.session.Stream(ctx, w.endless()))
	reader.Cancel()
	if _, err := io.ReadAll(reader); !errors.Is(err, context.Canceled) {
		t.Errorf("reader: %v", err)
	}
}

// waitFor polls a condition that must come true without further help.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for i := 0; i < 6000; i++ {
		if condition() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what, "did not happen")
}

func TestAnAbandonedChannelEndsWithItsContext(t *testing.T) {
	w := newWorld(t, nil)
	before := runtime.NumGoroutine()
	for i := 0; i < 20; i++ {
		cancellable, cancel := context.WithCancel(ctx)
		stream := must[*Stream](t)(w.session.Stream(cancellable, w.endless()))
		<-stream.Events()
		cancel()
		stream.Result()
	}
	waitFor(t, "the end of all goroutines", func() bool {
		return runtime.NumGoroutine() <= before
	})
}

func TestTheEngineGoesWhileStreamsRun(t *testing.T) {
	w := newWorld(t, nil)
	var streams []*Stream
	for i := 0; i < 4; i++ {
		streams = append(streams, must[*Stream](t)(w.newSession(t).Stream(ctx, w.endless())))
	}
	w.engine.Close()
	for _, s := range streams {
		if _, err := s.Result(); !errors.Is(err, StatusCancelled) {
			t.Errorf("got %v", err)
		}
	}
}

func TestTheHostTurnsTheEngine(t *testing.T) {
	w := newWorld(t, &EngineOptions{Drive: DriveHost})
	stream := must[*Stream](t)(w.session.Stream(ctx, w.request()))
	steps := 0
	for worked := true; worked; steps++ {
		worked = must[bool](t)(w.engine.Step())
	}
	if steps < len(w.golden.ContinuationIDs) {
		t.Errorf("%d steps", steps)
	}
	equal(t, "ids", idsOf(stream), w.golden.ContinuationIDs)
	w.works(t, w.session) // Generate turns it by itself.
	// Nobody turns it any more: the engine's end is the stream's.
	left := must[*Stream](t)(w.session.Stream(ctx, w.endless()))
	left.Close()
	w.engine.Close()
	if _, err := left.Result(); err == nil {
		t.Error("a stream of an engine that is gone has no error")
	}
	if _, err := newWorld(t, nil).engine.Step(); !errors.Is(err, StatusState) {
		t.Errorf("step of another drive: %v", err)
	}
}

func TestLogAndMetrics(t *testing.T) {
	var mutex sync.Mutex
	messages := 0
	w := newWorld(t, &EngineOptions{Threads: 1, Affinity: []int{0}, Log: func(l LogLevel,
		message string) {
		mutex.Lock()
		defer mutex.Unlock()
		if message != "" && l >= LogLevelError && l <= LogLevelDebug {
			messages++
		}
	}})
	w.works(t, w.session)
	equal(t, "threads", w.engine.Threads(), 1)
	mutex.Lock()
	if messages == 0 {
		t.Error("no message")
	}
	mutex.Unlock()
	metrics := must[Metrics](t)(w.engine.Metrics())
	equal(t, "output", metrics.OutputTokens, uint64(len(w.golden.ContinuationIDs)))
	memory := must[Memory](t)(w.engine.Memory())
	if memory.UsedBytes <= 0 || memory.KVBytes <= 0 {
		t.Errorf("%+v", memory)
	}
	text := must[string](t)(w.engine.RenderMetrics(MetricNative, "mine"))
	if !strings.Contains(text, `engine="mine"`) {
		t.Error("no label")
	}
}
