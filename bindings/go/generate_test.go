package optima

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"unicode/utf8"
)

// forced is a text that a grammar forces on the model, whose tokens are mostly single bytes.
const forced = "größe: 日本語 😀!"

func (w *world) forcing() *Request {
	return &Request{Prompt: "a", GrammarKind: GrammarGBNF, Grammar: `root ::= "` + forced + `"`}
}

func TestGenerateGivesTheGoldenIDs(t *testing.T) {
	w := newWorld(t, nil)
	r := must[*Result](t)(w.session.Generate(ctx, w.request()))
	equal(t, "ids", r.TokenIDs, w.golden.ContinuationIDs)
	equal(t, "prompt ids", r.PromptIDs, w.golden.PromptIDs)
	equal(t, "finish", r.Finish, FinishLength)
	bytes := must[string](t)(w.model.Detokenize(w.golden.ContinuationIDs, 0))
	equal(t, "bytes", string(r.Bytes), bytes)
	equal(t, "counted prompt", r.Counters.PromptTokens, int64(len(w.golden.PromptIDs)))
	equal(t, "counted output", r.Counters.OutputTokens, int64(len(w.golden.ContinuationIDs)))
	tokens := must[[]int32](t)(w.session.Tokens())
	equal(t, "session", tokens, append(append([]int32{}, w.golden.PromptIDs...),
		w.golden.ContinuationIDs...))
}

func TestMultiByteTextComesWhole(t *testing.T) {
	w := newWorld(t, nil)
	text, split := "", 0
	request := w.forcing()
	request.OnEvent = func(e Event) error {
		if e.Type == EventToken {
			if !utf8.ValidString(e.Text) {
				t.Errorf("text %q of a token", e.Text)
			}
			if !utf8.Valid(e.Bytes) {
				split++
			}
			text += e.Text
		}
		return nil
	}
	r := must[*Result](t)(w.session.Generate(ctx, request))
	equal(t, "events", text, forced)
	equal(t, "result", r.Text, forced)
	if split == 0 {
		t.Error("no code point was split over tokens: the test shows nothing")
	}
}

func TestOnEventStops(t *testing.T) {
	w := newWorld(t, nil)
	request := w.request()
	request.OnEvent = func(e Event) error {
		if e.Type == EventToken && e.Index == 2 {
			return Stop
		}
		return nil
	}
	r := must[*Result](t)(w.session.Generate(ctx, request))
	equal(t, "finish", r.Finish, FinishHost)
	equal(t, "ids", r.TokenIDs, w.golden.ContinuationIDs[:3])
}

func TestErrorOfACallbackIsReturnedAndRollsBack(t *testing.T) {
	w := newWorld(t, nil)
	mine := errors.New("mine")
	for _, at := range []EventType{EventPrefill, EventToken} {
		calls := 0
		request := w.request()
		request.OnEvent = func(e Event) error {
			if e.Type == at {
				calls++
				return mine
			}
			return nil
		}
		r, err := w.session.Generate(ctx, request)
		equal(t, "error", err, mine)
		equal(t, "calls", calls, 1)
		equal(t, "finish", r.Finish, FinishCancelled)
		equal(t, "session", len(must[[]int32](t)(w.session.Tokens())), 0)
	}
	w.works(t, w.session)
}

// panicOf returns what a call panics with.
func panicOf(call func()) (value any) {
	defer func() { value = recover() }()
	call()
	return nil
}

func TestPanicOfACallbackReachesTheCaller(t *testing.T) {
	w := newWorld(t, nil)
	type own struct{ number int }
	onEvent := w.request()
	onEvent.OnEvent = func(e Event) error { panic(own{1}) }
	equal(t, "on event", panicOf(func() { w.session.Generate(ctx, onEvent) }), any(own{1}))
	w.works(t, w.session)
	onLogits := w.request()
	onLogits.OnLogits = func([]float32, []int32) error { panic(own{2}) }
	equal(t, "on logits", panicOf(func() { w.session.Generate(ctx, onLogits) }), any(own{2}))
	w.works(t, w.session)
	stream := must[*Stream](t)(w.session.Stream(ctx, onLogits))
	equal(t, "next", panicOf(func() {
		for stream.Next() {
		}
	}), any(own{2}))
	equal(t, "result", panicOf(func() { stream.Result() }), any(own{2}))
	w.works(t, w.session)
}

func TestCallsFromACallbackAreBusy(t *testing.T) {
	w := newWorld(t, nil)
	other := w.newSession(t)
	var inside []error
	request := w.request()
	request.OnEvent = func(e Event) error {
		if e.Type != EventToken {
			return nil
		}
		_, own := w.session.Generate(ctx, w.request())
		_, another := other.Generate(ctx, w.request())
		inside = append(inside, own, another)
		return Stop
	}
	must[*Result](t)(w.session.Generate(ctx, request))
	equal(t, "calls", len(inside), 2)
	for _, err := range inside {
		if !errors.Is(err, StatusBusy) {
			t.Errorf("got %v, want BUSY", err)
		}
	}
	w.works(t, w.session)
	w.works(t, other)
}

func TestOnLogitsChoosesTheTokens(t *testing.T) {
	w := newWorld(t, nil)
	seen := []int{}
	request := &Request{PromptIDs: w.golden.PromptIDs, MaxTokens: 3, Flags: RequestIgnoreEOS,
		OnLogits: func(logits []float32, tokens []int32) error {
			seen = append(seen, len(tokens))
			for i := range logits {
				logits[i] = float32(math.Inf(-1))
			}
			logits[20+len(tokens)%7] = 0
			return nil
		}}
	r := must[*Result](t)(w.session.Generate(ctx, request))
	n := len(w.golden.PromptIDs)
	equal(t, "tokens seen", seen, []int{n, n + 1, n + 2})
	equal(t, "ids", r.TokenIDs, []int32{int32(20 + n%7), int32(20 + (n+1)%7),
		int32(20 + (n+2)%7)})
	mine := errors.New("mine")
	request.OnLogits = func([]float32, []int32) error { return mine }
	_, err := w.session.Generate(ctx, request)
	equal(t, "error", err, mine)
}

func TestLogprobsAndLogits(t *testing.T) {
	w := newWorld(t, nil)
	request := w.request()
	request.Logprobs = 2
	last := int64(len(w.golden.PromptIDs) - 1)
	request.LogitsPositions = []int64{last, last + 1}
	r := must[*Result](t)(w.session.Generate(ctx, request))
	equal(t, "logprobs", len(r.Logprobs), len(r.TokenIDs))
	for i, top := range r.Top {
		equal(t, "top", len(top), 2)
		equal(t, "greedy", top[0], TokenLogprob{r.TokenIDs[i], r.Logprobs[i]})
	}
	equal(t, "rows", len(r.Logits), 2)
	for i, row := range r.Logits {
		equal(t, "row", len(row), w.golden.Vocabulary)
		best := 0
		for j := range row {
			if row[j] > row[best] {
				best = j
			}
		}
		equal(t, "best", int32(best), w.golden.ContinuationIDs[i])
	}
}

func TestTwoEnginesAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for i := 0; i < 2; i++ {
		w := newWorld(t, &EngineOptions{Threads: 1})
		for j := 0; j < 2; j++ {
			s := w.newSession(t)
			all.Add(1)
			go func() {
				defer all.Done()
				r, err := s.Generate(ctx, w.request())
				if err != nil {
					t.Error(err)
					return
				}
				equal(t, "ids", r.TokenIDs, w.golden.ContinuationIDs)
			}()
		}
	}
	all.Wait()
}

func TestCancelFromAnotherGoroutineEndsWithinAChunk(t *testing.T) {
	w := newWorld(t, nil)
	s := must[*Session](t)(w.model.NewSession(&SessionOptions{PrefillChunkTokens: 16}))
	defer s.Close()
	cancellable, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := uint64(0) // When the cancel was there; chunks are computed while a callback waits.
	request := &Request{PromptIDs: w.longPrompt(s.ContextTokens() - 8), MaxTokens: 4}
	request.OnEvent = func(e Event) error {
		if batches == 0 {
			go cancel()
			for !s.triggered() {
				runtime.Gosched()
			}
			batches = must[Metrics](t)(w.engine.Metrics()).Batches
		}
		return nil
	}
	r, err := s.Generate(cancellable, request)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, StatusCancelled) {
		t.Fatalf("got %v", err)
	}
	equal(t, "finish", r.Finish, FinishCancelled)
	if len(r.TokenIDs) > 1 { // One may have been computed before the cancel.
		t.Errorf("%d output tokens", len(r.TokenIDs))
	}
	after := must[Metrics](t)(w.engine.Metrics()).Batches
	if batches == 0 || after > batches+1 {
		t.Errorf("%d chunks at the cancel, %d at the end", batches, after)
	}
	w.works(t, s)
}

// triggered tells whether what runs in the session is to end.
func (s *Session) triggered() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for l := range s.running {
		if cCancelTriggered(l.pointer) == 1 {
			return true
		}
	}
	return false
}

func TestCancelBeforeTheStart(t *testing.T) {
	w := newWorld(t, nil)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	r, err := w.session.Generate(cancelled, w.endless())
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	equal(t, "output", len(r.TokenIDs), 0)
	stream := must[*Stream](t)(w.session.Stream(cancelled, w.endless()))
	equal(t, "next", stream.Next(), false)
	if _, err := stream.Result(); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	w.works(t, w.session)
}

func TestCloseEndsWhatRuns(t *testing.T) {
	w := newWorld(t, nil)
	for _, closing := range []func(s *Session) error{
		(*Session).Close, func(s *Session) error { return s.model.engine.Close() },
	} {
		s := w.newSession(t)
		request := w.endless()
		began := make(chan struct{})
		var once sync.Once
		request.OnEvent = func(e Event) error {
			once.Do(func() { close(began) })
			return nil
		}
		go func() {
			<-began
			closing(s)
		}()
		r, err := s.Generate(ctx, request)
		if !errors.Is(err, StatusCancelled) || r == nil {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := w.session.Generate(ctx, w.request()); !errors.Is(err, StatusState) {
		t.Errorf("after the engine's end: %v", err)
	}
	w.session.Close()
	if _, err := w.session.Generate(ctx, w.request()); !errors.Is(err, StatusState) {
		t.Errorf("after the session's end: %v", err)
	}
}
