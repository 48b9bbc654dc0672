// Package optima runs large language models in the process: the Go face of libsitsoptima.
//
// An Engine owns threads and memory and loads Models; a Session is one conversation with a Model.
// Session.Generate answers in one call, Session.Stream piece by piece. A context cancels either
// one at any time, and its deadline is theirs.
//
//	engine, err := optima.NewEngine(nil)
//	defer engine.Close()
//	model, err := engine.OpenModel(ctx, "model.gguf", nil)
//	defer model.Close()
//	session, err := model.NewSession(nil)
//	defer session.Close()
//	result, err := session.Generate(ctx, &optima.Request{Prompt: "Once", MaxTokens: 32})
//
// Everything may be called from any goroutine and closed in any order; what is not closed is
// closed when it is collected as garbage. Errors of the library are *Error values with numbers.
// The shared library is loaded by the first call that needs it; see Load.
//
// Files raw_*.go and constants.go are generated from the description of the C API.
package optima
