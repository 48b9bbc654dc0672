package optima

import (
	"context"
	"runtime/cgo"
	"time"
	"unsafe"
)

// Event is something that happened to a request.
type Event struct {
	// Type is EventPrefill or EventToken; the end is told by the call itself.
	Type EventType
	// Text became complete with this token: whole code points, may be empty.
	Text string
	// Bytes are exactly the token's; they may be a part of a code point.
	Bytes []byte
	// Token is -1 in EventPrefill.
	Token   int32
	Logprob float32
	// Index is the token's place in the output.
	Index int64
	// Top are the most probable tokens, best first, as many as Request.Logprobs asks.
	Top []TokenLogprob
	// TokensDone of TokensTotal prompt tokens are processed (EventPrefill).
	TokensDone, TokensTotal int64
}

// TokenLogprob is a token and the natural logarithm of its probability under the model's own
// softmax, before bias, penalties and temperature.
type TokenLogprob struct {
	Token   int32
	Logprob float32
}

// LogitBias is added to one token's logit; -Inf bans the token.
type LogitBias struct {
	Token int32
	Bias  float32
}

// Request describes one generation or embedding. The zero value of a field is its default; zeros
// of the sampling fields switch them off, so that the default is greedy.
type Request struct {
	Prompt    string
	PromptIDs []int32 // Instead of Prompt when not nil.
	Flags     RequestFlags
	// MaxTokens is the most output tokens. 0 = until a stop or a full context.
	MaxTokens  int
	Stops      []string // Strings that end the output; they are not part of the text.
	StopTokens []int32  // Further tokens that end it.

	Temperature float32 // 0 = greedy.
	TopP        float32 // Keep the most probable tokens up to this mass.
	TopK        int     // Keep this many.
	MinP        float32 // Drop tokens less probable than this share of the best one.
	TypicalP    float32
	TopNSigma   float32 // Drop logits this many standard deviations below the best.
	Seed        uint64  // The same seed and request give the same output.

	RepetitionPenalty float32 // Divides the logits of tokens that occurred.
	PresencePenalty   float32
	FrequencyPenalty  float32
	PenaltyWindow     int // Last tokens that penalties look at. 0 = all.
	LogitBias         []LogitBias

	XTCProbability  float32 // How often XTC drops all tokens above XTCThreshold but the last.
	XTCThreshold    float32 // 0 = 0.1.
	MirostatTau     float32 // Mirostat 2: the surprise to aim at, in bits.
	MirostatEta     float32 // 0 = 0.1.
	DynamicRange    float32 // Temperature varies by the entropy, up to this much.
	DynamicExponent float32 // 0 = 1.

	DRYMultiplier    float32 // Strength of the penalty for going on with a repetition.
	DRYBase          float32 // 0 = 1.75.
	DRYAllowedLength int     // 0 = 2.
	DRYWindow        int     // 0 = all.
	DRYBreakers      []int32 // Tokens that no repetition goes across.

	// Grammar restricts the output, in the language of GrammarKind.
	Grammar     string
	GrammarKind Grammar

	Logprobs           int   // Most probable tokens to report beside each output token.
	PromptLogprobsFrom int64 // With RequestPromptLogprobs: the first position scored.
	// LogitsPositions, ascending, in the sequence of prompt and output: Result.Logits gets, for
	// each position, the logits that predict the token behind it.
	LogitsPositions []int64

	Priority        int // -100 to 100; higher comes first.
	DraftTokens     int // Most tokens that a step guesses, at most 32. 0 = off.
	ShiftKeepTokens int // With RequestContextShift: first tokens that stay. 0 = 4.

	Pooling   Pooling   // Sessions for embeddings.
	Normalise Normalise // Sessions for embeddings.

	// OnEvent is called by Generate, on its goroutine, before the next token is computed. An error
	// ends the request: Stop keeps the output, any other rolls the session back to before the
	// request and is what Generate returns. A panic does so too and goes on in Generate. Calls of
	// Generate and Embed on the same engine are StatusBusy inside it. Must be nil for a stream.
	OnEvent func(event Event) error
	// OnLogits changes the logits of each output token in place before one is chosen; tokens are
	// prompt and output so far. Both slices are C's and valid during the call. It runs on the
	// thread that drives the engine and must not call into it. An error ends the request.
	OnLogits func(logits []float32, tokens []int32) error
}

// call is one request in work: what its cookie stands for, and its memory.
type call struct {
	carrier
	request *Request // A copy: the host may change its own.
	latch   *latch
	memory  arena
	desc    *cRequestDesc
	logits  *float32 // In memory: a row for each of LogitsPositions.
	row     int      // Floats of a row.
	// deadlineMs is from the beginning of the call. 0 = none.
	deadlineMs int64
}

// newCall copies the request into C's memory and ties it to the context.
func newCall(ctx context.Context, op string, request *Request, row int) (*call, error) {
	latch, err := newLatch(op)
	if err != nil {
		return nil, err
	}
	kept := *request
	c := &call{request: &kept, latch: latch, row: row}
	c.fill()
	c.desc.cancel = latch.pointer
	if deadline, ok := ctx.Deadline(); ok {
		// Rounded up: the context's own time comes first, never the library's.
		left := time.Until(deadline)
		c.deadlineMs = int64((left + time.Millisecond - 1) / time.Millisecond)
		if c.deadlineMs < 1 {
			c.deadlineMs = 1
		}
		c.desc.deadlineMs = c.deadlineMs
	}
	latch.follow(ctx)
	return c, nil
}

// expect makes a cookie of user, whose methods are the callbacks; C releases it.
func (c *call) expect(user any) {
	c.desc.user, c.desc.release = uintptr(cgo.NewHandle(user)), cReleaseFn
	if c.request.OnLogits != nil {
		c.desc.onLogits = cOnLogitsFn
	}
}

// free ends the call: nothing of it is in C's hands any more.
func (c *call) free() {
	c.latch.close()
	c.memory.free()
}

func (c *call) release() {}

func (c *call) onEvent(event *cEvent) int32 {
	if event.type_ == EventDone {
		return int32(verdictContinue)
	}
	// After the first verdict that ends the request another event may be on its way already.
	ended := c.err != nil || c.panicked
	if !ended && c.run(func() error { return c.request.OnEvent(newEvent(event)) }) {
		return int32(verdictContinue)
	}
	if c.err == Stop && !c.panicked {
		return int32(verdictStop)
	}
	return int32(verdictCancel)
}

func (c *call) onLogits(logits *float32, vocabulary int64, tokens *int32, tokenCount int64) int32 {
	return verdictOf(c.run(func() error {
		return c.request.OnLogits(unsafe.Slice(logits, vocabulary),
			unsafe.Slice(tokens, tokenCount))
	}))
}

func newEvent(c *cEvent) Event {
	e := Event{Type: c.type_, Text: cText(c.text, c.textBytes), Bytes: cList(c.bytes, c.bytesCount),
		Token: c.token, Logprob: c.logprob, Index: c.index,
		TokensDone: c.tokensDone, TokensTotal: c.tokensTotal}
	if c.topCount > 0 {
		e.Top = newTop(c.top, c.topCount)
	}
	return e
}

func newTop(first *cTokenLogprob, count int64) []TokenLogprob {
	top := make([]TokenLogprob, count)
	for i, pair := range unsafe.Slice(first, count) {
		top[i] = TokenLogprob{pair.token, pair.logprob}
	}
	return top
}

func (c *call) fill() {
	r, a := c.request, &c.memory
	d := place[cRequestDesc](a)
	c.desc = d
	d.structSize = uint32(unsafe.Sizeof(*d))
	if d.promptIDs, d.promptIDCount = list(a, r.PromptIDs); d.promptIDs == nil {
		d.prompt, d.promptBytes = a.text(r.Prompt)
	}
	d.flags, d.maxTokens, d.logprobs = uint32(r.Flags), int64(r.MaxTokens), int32(r.Logprobs)
	d.stops, d.stopBytes = a.texts(r.Stops)
	d.stopCount = uintptr(len(r.Stops))
	d.stopTokens, d.stopTokenCount = list(a, r.StopTokens)
	d.temperature, d.topP, d.topK = r.Temperature, r.TopP, int32(r.TopK)
	d.minP, d.typicalP, d.topNSigma = r.MinP, r.TypicalP, r.TopNSigma
	d.seed = r.Seed
	d.repetitionPenalty, d.presencePenalty = r.RepetitionPenalty, r.PresencePenalty
	d.frequencyPenalty, d.penaltyWindow = r.FrequencyPenalty, int32(r.PenaltyWindow)
	biases := make([]cLogitBias, len(r.LogitBias))
	for i, bias := range r.LogitBias {
		biases[i] = cLogitBias{token: bias.Token, bias: bias.Bias}
	}
	d.logitBias, d.logitBiasCount = list(a, biases)
	d.xtcProbability, d.xtcThreshold = r.XTCProbability, r.XTCThreshold
	d.mirostatTau, d.mirostatEta = r.MirostatTau, r.MirostatEta
	d.dynamicRange, d.dynamicExponent = r.DynamicRange, r.DynamicExponent
	d.dryMultiplier, d.dryBase = r.DRYMultiplier, r.DRYBase
	d.dryAllowedLength, d.dryWindow = int32(r.DRYAllowedLength), int32(r.DRYWindow)
	d.dryBreakers, d.dryBreakerCount = list(a, r.DRYBreakers)
	d.grammar, d.grammarBytes = a.optional(r.Grammar)
	d.grammarKind = r.GrammarKind
	d.promptLogprobsFrom = r.PromptLogprobsFrom
	d.priority, d.draftTokens = int32(r.Priority), int64(r.DraftTokens)
	d.shiftKeepTokens = int64(r.ShiftKeepTokens)
	d.pooling, d.normalise = r.Pooling, r.Normalise
	if len(r.LogitsPositions) > 0 {
		d.logitsPositions, d.logitsPositionCount = list(a, r.LogitsPositions)
		d.logitsOut, d.logitsCapacity = list(a, make([]float32, len(r.LogitsPositions)*c.row))
		c.logits = d.logitsOut
	}
}
