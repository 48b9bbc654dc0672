package optima

import (
	"runtime"
	"testing"
)

// TestWhatIsNotClosedIsCollected leaves everything to the finalisers.
func TestWhatIsNotClosedIsCollected(t *testing.T) {
	want := readJSON[golden](t, "tiny/"+tiny+".json")
	closed := make(chan struct{}, 8)
	for i := 0; i < 8; i++ {
		func() {
			engine := must[*Engine](t)(NewEngine(&EngineOptions{Threads: 2, Log: func(LogLevel,
				string) {
			}}))
			destroy := engine.handle.destroy
			engine.handle.destroy = func(p *cEngine) { destroy(p); closed <- struct{}{} }
			model := must[*Model](t)(engine.OpenModel(ctx, goldenFile("tiny/"+tiny+".gguf"), nil))
			session := must[*Session](t)(model.NewSession(nil))
			// The last one in use keeps all alive.
			engine, model = nil, nil
			runtime.GC()
			must[*Result](t)(session.Generate(ctx, &Request{PromptIDs: want.PromptIDs,
				MaxTokens: 2}))
			stream := must[*Stream](t)(session.Stream(ctx, &Request{PromptIDs: want.PromptIDs,
				MaxTokens: 2}))
			must[*Result](t)(stream.Result())
		}()
	}
	gone := 0
	waitFor(t, "the end of all engines", func() bool {
		runtime.GC()
		for {
			select {
			case <-closed:
				gone++
				continue
			default:
			}
			return gone == 8
		}
	})
}

// TestGarbageCollectionBetweenEvents moves and frees what Go may while C holds the cookies.
func TestGarbageCollectionBetweenEvents(t *testing.T) {
	w := newWorld(t, nil)
	request := w.request()
	request.OnEvent = func(Event) error { runtime.GC(); return nil }
	request.OnLogits = func([]float32, []int32) error { runtime.GC(); return nil }
	r := must[*Result](t)(w.session.Generate(ctx, request))
	equal(t, "ids", r.TokenIDs, w.golden.ContinuationIDs)
	request = w.request()
	request.OnLogits = func([]float32, []int32) error { runtime.GC(); return nil }
	stream := must[*Stream](t)(w.session.Stream(ctx, request))
	equal(t, "ids", idsOf(stream), w.golden.ContinuationIDs)
}

func TestClosingInEveryOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		w := newWorld(t, nil)
		stream := must[*Stream](t)(w.session.Stream(ctx, w.endless()))
		for _, which := range order {
			[]func() error{w.engine.Close, w.model.Close, w.session.Close}[which]()
		}
		if _, err := stream.Result(); err == nil {
			t.Errorf("%v: the stream ended without an error", order)
		}
		stream.Close()
		w.engine.Close() // Again: nothing.
		if _, err := w.model.Info(); err == nil {
			t.Errorf("%v: a closed model answers", order)
		}
	}
}
