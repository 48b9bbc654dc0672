package optima

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The tests get the library and the repository's folder by these variables.
const (
	libraryVariable = "OPTIMA_TEST_LIBRARY"
	sourceVariable  = "OPTIMA_TEST_SOURCE"
	childVariable   = "OPTIMA_TEST_CHILD" // The run without a library: see load_test.go.
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		if err := Load(os.Getenv(libraryVariable)); err != nil {
			fmt.Fprintln(os.Stderr, libraryVariable+":", err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// golden is what an independent implementation computes with a tiny model.
type golden struct {
	Prompt          string  `json:"prompt"`
	PromptIDs       []int32 `json:"prompt_ids"`
	ContinuationIDs []int32 `json:"continuation_ids"`
	Vocabulary      int     `json:"vocabulary"`
}

func goldenFile(name string) string {
	return filepath.Join(os.Getenv(sourceVariable), "tests", "goldens", name)
}

func readJSON[T any](t testing.TB, name string) (value T) {
	t.Helper()
	text := must[[]byte](t)(os.ReadFile(goldenFile(name)))
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

const tiny = "llama-q8_0"

var ctx = context.Background()

// world is an engine with a tiny model and a session of it.
type world struct {
	engine  *Engine
	model   *Model
	session *Session
	golden  golden
}

func newWorld(t testing.TB, options *EngineOptions) *world {
	t.Helper()
	w := &world{golden: readJSON[golden](t, "tiny/"+tiny+".json")}
	w.engine = must[*Engine](t)(NewEngine(options))
	t.Cleanup(func() { w.engine.Close() })
	path := goldenFile("tiny/" + tiny + ".gguf")
	w.model = must[*Model](t)(w.engine.OpenModel(ctx, path, nil))
	t.Cleanup(func() { w.model.Close() })
	w.session = w.newSession(t)
	return w
}

func (w *world) newSession(t testing.TB) *Session {
	t.Helper()
	s := must[*Session](t)(w.model.NewSession(nil))
	t.Cleanup(func() { s.Close() })
	return s
}

// request is the one whose output the golden holds.
func (w *world) request() *Request {
	return &Request{Prompt: w.golden.Prompt, MaxTokens: len(w.golden.ContinuationIDs),
		Flags: RequestIgnoreEOS}
}

// endless goes on until it is stopped, or the context is full.
func (w *world) endless() *Request {
	return &Request{Prompt: w.golden.Prompt, Flags: RequestIgnoreEOS | RequestContextShift}
}

// works checks that the session answers as the golden says.
func (w *world) works(t testing.TB, s *Session) {
	t.Helper()
	r := must[*Result](t)(s.Generate(ctx, w.request()))
	equal(t, "ids", r.TokenIDs, w.golden.ContinuationIDs)
}

// longPrompt has this many tokens.
func (w *world) longPrompt(tokens int) []int32 {
	ids := make([]int32, tokens)
	for i := range ids {
		ids[i] = w.golden.PromptIDs[i%len(w.golden.PromptIDs)]
	}
	return ids
}
