package optima

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// after asks for what follows the session's tokens.
func (w *world) after(t *testing.T, s *Session, tokens int) []int32 {
	t.Helper()
	r := must[*Result](t)(s.Generate(ctx, &Request{MaxTokens: tokens,
		Flags: RequestAppend | RequestIgnoreEOS | RequestNoAddSpecial}))
	return r.TokenIDs
}

func TestForkSaveAndRestoreGoOnAlike(t *testing.T) {
	w := newWorld(t, nil)
	head := w.request()
	head.MaxTokens = 10
	must[*Result](t)(w.session.Generate(ctx, head))
	rest := w.golden.ContinuationIDs[10:]

	fork := must[*Session](t)(w.session.Fork())
	defer fork.Close()
	var saved bytes.Buffer
	if err := w.session.Save(&saved); err != nil {
		t.Fatal(err)
	}
	equal(t, "bytes", int64(saved.Len()), w.session.SaveBytes())
	path := filepath.Join(t.TempDir(), "session")
	if err := w.session.SaveFile(path); err != nil {
		t.Fatal(err)
	}
	reader := bytes.NewReader(saved.Bytes())
	restored := must[*Session](t)(w.model.RestoreSession(reader, reader.Size(), nil))
	defer restored.Close()
	file := must[*Session](t)(w.model.RestoreSessionFile(path, nil))
	defer file.Close()
	kv := must[SessionKV](t)(fork.KV())
	if kv.SharedPages == 0 {
		t.Errorf("a fork shares nothing: %+v", kv)
	}
	for name, s := range map[string]*Session{"itself": w.session, "fork": fork,
		"restored": restored, "from a file": file} {
		equal(t, name, w.after(t, s, len(rest)), rest)
	}

	damaged := append([]byte(nil), saved.Bytes()...)
	damaged[len(damaged)/2] ^= 1
	_, err := w.model.RestoreSession(bytes.NewReader(damaged), int64(len(damaged)), nil)
	equal(t, "damaged", of(t, err).Status, StatusFormat)
	if err := w.session.Save(failing{}); !errors.Is(err, errFull) {
		t.Errorf("writer: %v", err)
	}
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestTruncate(t *testing.T) {
	w := newWorld(t, nil)
	w.works(t, w.session)
	if err := w.session.Truncate(len(w.golden.PromptIDs) + 4); err != nil {
		t.Fatal(err)
	}
	equal(t, "ids", w.after(t, w.session, 3), w.golden.ContinuationIDs[4:7])
	if err := w.session.Truncate(0); err != nil {
		t.Fatal(err)
	}
	equal(t, "tokens", len(must[[]int32](t)(w.session.Tokens())), 0)
	info := must[ModelInfo](t)(w.model.Info())
	equal(t, "context", w.session.ContextTokens(), int(info.ContextLength))
}

func TestTokensAndText(t *testing.T) {
	w := newWorld(t, nil)
	ids := must[[]int32](t)(w.model.Tokenize(w.golden.Prompt, 0))
	equal(t, "ids", ids, w.golden.PromptIDs)
	equal(t, "text", must[string](t)(w.model.Detokenize(ids, 0)), w.golden.Prompt)
	_, err := w.model.Detokenize([]int32{1 << 20}, 0)
	equal(t, "status", of(t, err).Status, StatusArg)
	info := must[ModelInfo](t)(w.model.Info())
	equal(t, "vocabulary", int(info.Vocabulary), w.golden.Vocabulary)
	equal(t, "layers", info.Layers, int32(3)) // README of the tiny models.
	equal(t, "generates", info.Generates, true)
	equal(t, "architecture", w.model.Architecture(), "llama")
	ending := info.EOS
	equal(t, "ends", w.model.TokenEnds(ending), true)
	equal(t, "kind", w.model.TokenKind(ending), TokenKindControl)
	found, ok := w.model.FindToken(w.model.TokenText(ending))
	equal(t, "found", found, ending)
	equal(t, "found", ok, true)
	if _, ok := w.model.FindToken("no such token"); ok {
		t.Error("found what is not there")
	}
}

func TestChatTemplate(t *testing.T) {
	w := newWorld(t, nil)
	chat := Chat{Messages: []Message{{"user", "größe?"}}}
	const want = "<|im_start|>user\ngröße?<|im_end|>\n"
	equal(t, "chat", must[string](t)(w.model.Render(chat)), want+"<|im_start|>assistant\n")
	chat.Flags = ChatNoGenerationPrompt
	equal(t, "chat", must[string](t)(w.model.Render(chat)), want)
	chat = Chat{MessagesJSON: `[{"role": "user", "content": "x"}]`, Extra: map[string]any{"n": 2},
		Tools: []string{"t"}, Now: time.Unix(86400*400, 0),
		Template: "{{ messages[0].content }} {{ n + 1 }} {{ tools[0] }} {{ strftime_now('%Y') }}"}
	equal(t, "own", must[string](t)(w.model.Render(chat)), "x 3 t 1971")
	_, err := w.model.Render(Chat{Template: "{% if %}"})
	equal(t, "bad", of(t, err).Status, StatusArg)
	if !strings.Contains(w.model.ChatTemplate(), "im_start") {
		t.Error("no template")
	}
}

func TestMetadata(t *testing.T) {
	w := newWorld(t, nil)
	equal(t, "string", must[any](t)(w.model.Metadata("general.architecture")), any("llama"))
	equal(t, "integer", must[any](t)(w.model.Metadata("llama.block_count")), any(int64(3)))
	tokens := must[any](t)(w.model.Metadata("tokenizer.ggml.tokens")).([]string)
	equal(t, "strings", len(tokens), w.golden.Vocabulary)
	equal(t, "string 10", tokens[10], w.model.TokenText(10))
	equal(t, "absent", must[any](t)(w.model.Metadata("no.such.key")), nil)
	info := must[ModelInfo](t)(w.model.Info())
	keys := must[[]string](t)(w.model.MetadataKeys())
	equal(t, "keys", int64(len(keys)), info.MetadataCount)
	tensors := must[[]Tensor](t)(w.model.Tensors())
	equal(t, "tensors", int64(len(tensors)), info.TensorCount)
	for _, tensor := range tensors {
		if tensor.Name == "token_embd.weight" {
			equal(t, "type", tensor.Type, "Q8_0")
			equal(t, "shape", tensor.Shape, []int64{64, int64(w.golden.Vocabulary)})
			return
		}
	}
	t.Error("no token_embd.weight")
}

// embeddings is what an independent implementation computes with a tiny encoder.
type embeddings struct {
	Texts  []string                          `json:"texts"`
	Values []map[string]map[string][]float32 `json:"text_embeddings"`
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	equal(t, what+": width", len(got), len(want))
	largest := 0.0
	for _, v := range want {
		largest = math.Max(largest, math.Abs(float64(v)))
	}
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > 1e-3*largest {
			t.Errorf("%s[%d]: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestEmbeddings(t *testing.T) {
	w := newWorld(t, nil)
	want := readJSON[embeddings](t, "embeddings/bert/golden.json")
	m := must[*Model](t)(w.engine.OpenModel(ctx, goldenFile("embeddings/bert"), nil))
	defer m.Close()
	s := must[*Session](t)(m.NewSession(&SessionOptions{Output: OutputEmbedding,
		Path: PathReference}))
	defer s.Close()
	r := must[*Result](t)(s.Embed(ctx, &Request{Prompt: want.Texts[0]}))
	equal(t, "finish", r.Finish, FinishEmbedded)
	near(t, "own", r.Embedding, want.Values[0]["mean"]["l2"])
	how := Request{Prompt: want.Texts[0], Pooling: PoolingLast, Normalise: NormaliseOff}
	near(t, "last", must[*Result](t)(s.Embed(ctx, &how)).Embedding, want.Values[0]["last"]["plain"])
	rows := must[[][]float32](t)(s.EmbedTexts(ctx, want.Texts, nil))
	equal(t, "rows", len(rows), len(want.Texts))
	for i, row := range rows {
		near(t, "row", row, want.Values[i]["mean"]["l2"])
	}
	_, err := s.Generate(ctx, &Request{Prompt: "a"})
	equal(t, "status", of(t, err).Status, StatusState)
}
