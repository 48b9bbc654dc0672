package optima

import (
	"context"
	"fmt"
	"unsafe"
)

// Result is what a request produced, all of it in Go's memory.
type Result struct {
	// Finish is why it ended.
	Finish Finish
	// StopIndex is which of Request.Stops ended it, -1 = none.
	StopIndex int
	// Text is whole code points, without the stop string; Bytes are those of the output's tokens.
	Text      string
	Bytes     []byte
	PromptIDs []int32
	TokenIDs  []int32
	// Logprobs has one for each of TokenIDs, Top the most probable tokens there when asked for.
	Logprobs []float32
	Top      [][]TokenLogprob
	// PromptLogprobs begins at position max(Request.PromptLogprobsFrom, 1).
	PromptLogprobs []float32
	// Logits has a row for each of Request.LogitsPositions.
	Logits    [][]float32
	Embedding []float32
	Counters  Counters
}

// listOf reads one of the arrays of a result.
func listOf[T any](r *cResult, read func(*cResult, *int64) *T) []T {
	var count int64
	first := read(r, &count)
	return cList(first, count)
}

func newResult(c *cResult, call *call) *Result {
	var bytes int64
	text := cResultText(c, &bytes)
	r := &Result{
		Finish:         cResultFinish(c),
		StopIndex:      int(cResultStopIndex(c)),
		Text:           cText(text, bytes),
		Bytes:          listOf(c, cResultBytes),
		PromptIDs:      listOf(c, cResultPromptIDs),
		TokenIDs:       listOf(c, cResultTokenIDs),
		Logprobs:       listOf(c, cResultLogprobs),
		PromptLogprobs: listOf(c, cResultPromptLogprobs),
		Embedding:      listOf(c, cResultEmbedding),
	}
	if call.request.Logprobs > 0 {
		for i := range r.TokenIDs {
			var count int64
			top := cResultTopLogprobs(c, int64(i), &count)
			r.Top = append(r.Top, newTop(top, count))
		}
	}
	for i := range call.request.LogitsPositions {
		all := unsafe.Slice(call.logits, len(call.request.LogitsPositions)*call.row)
		r.Logits = append(r.Logits, append([]float32(nil), all[i*call.row:(i+1)*call.row]...))
	}
	counters := cCounters{structSize: uint32(unsafe.Sizeof(cCounters{}))}
	cResultCounters(c, &counters, nil)
	r.Counters = counters.public()
	return r
}

// outcome makes what a request returns: a cancelled or late one has a result and an error.
func (c *call) outcome(ctx context.Context, op string, status Status, result *cResult,
	why *cError) (*Result, error) {
	err := toError(op, status, why)
	if c.err != nil && c.err != Stop {
		err = c.err // The callback's own.
	}
	if result == nil {
		return nil, err
	}
	defer cResultDestroy(result)
	r := newResult(result, c)
	if err == nil {
		err = c.ended(ctx, op, r)
	}
	return r, err
}

// ended is the error of a request that was ended from outside.
func (c *call) ended(ctx context.Context, op string, r *Result) error {
	status := StatusCancelled
	switch {
	case r.Finish == FinishDeadline, r.Finish == FinishCancelled &&
		ctx.Err() == context.DeadlineExceeded:
		status = StatusDeadline
	case r.Finish != FinishCancelled:
		return nil
	}
	err := newError(status, op, fmt.Sprintf("ended after %d output tokens", len(r.TokenIDs)))
	err.Available = int64(len(r.TokenIDs))
	if c.request.MaxTokens > 0 {
		err.Wanted = int64(c.request.MaxTokens)
		err.Message += fmt.Sprintf(" of %d", c.request.MaxTokens)
	}
	if status == StatusDeadline {
		err.Limit = c.deadlineMs
		err.Message += fmt.Sprintf(", with a deadline of %d ms", c.deadlineMs)
	}
	return err
}
