package optima

import (
	"runtime"
	"runtime/cgo"
	"sync"
	"unsafe"
)

// EngineOptions says how an engine works; the zero value is the default.
type EngineOptions struct {
	// Threads that compute. 0 = CPUs of the affinity mask, within the cgroup quota.
	Threads int
	// Priority is a nice value added to the library's threads, 0 to 19.
	Priority int
	// Affinity lists the CPUs that the library's threads may use. Empty = inherit.
	Affinity []int
	// Drive says who turns the engine for streams; with DriveHost, Step does.
	Drive Drive
	// LogLevel is the least severe level that reaches Log. 0 = all.
	LogLevel LogLevel
	// Log gets messages, on any thread; it must not call into the engine. nil = silent.
	Log func(level LogLevel, message string)
	// MemoryLimitBytes is the most for weights read into memory, KV and activations. 0 = no limit.
	MemoryLimitBytes int64
	// KVBudgetBytes is the most for KV, held and cached. 0 = half of the memory that is free now;
	// with MemoryLimitBytes that limit alone.
	KVBudgetBytes int64
	// KVCachedBytes of it are for KV that no session holds. 0 = a quarter, at most 512 MiB;
	// -1 = none.
	KVCachedBytes int64
	// QueueMax is the most requests that wait to begin; one more is StatusBusy. 0 = no limit.
	QueueMax int64
	// Spill is where the KV of preempted requests goes. nil = it is computed again.
	Spill Spill
}

// Spill keeps the KV of preempted requests. Its methods are called on the thread that drives the
// engine and must not call into it; what cannot be written or read back is computed again.
type Spill interface {
	// Write appends to what was written under id.
	Write(id uint64, from []byte) error
	// Read fills into from what was written under id, beginning at offset.
	Read(id uint64, into []byte, offset int64) error
	// Discard forgets what was written under id.
	Discard(id uint64)
}

// Engine owns threads and memory, loads models and runs requests. All its methods may be called
// from any goroutine.
type Engine struct {
	handle handle[cEngine]
	drive  Drive

	mutex   sync.Mutex
	streams map[*Stream]struct{} // Those that run, or are about to.
	// pending counts submitted streams less the ends that were polled. A stream's end may be
	// polled before its submission is counted, so it can be too low meanwhile, never for good.
	pending int
	polling bool
}

// logger and spiller are what the cookies of an engine stand for.
type logger func(level LogLevel, message string)

func (l logger) release() {}
func (l logger) log(level LogLevel, message *byte, bytes uintptr) {
	onLibraryThread(func() { l(level, cText(message, int64(bytes))) })
}

type spiller struct{ Spill }

func (s spiller) release() {}
func (s spiller) spillWrite(id uint64, from unsafe.Pointer, bytes int64) int32 {
	return failed(func() error { return s.Write(id, unsafe.Slice((*byte)(from), bytes)) })
}
func (s spiller) spillRead(id uint64, into unsafe.Pointer, offset, bytes int64) int32 {
	return failed(func() error { return s.Read(id, unsafe.Slice((*byte)(into), bytes), offset) })
}
func (s spiller) spillDiscard(id uint64) { onLibraryThread(func() { s.Discard(id) }) }

func failed(callback func() error) (out int32) {
	onLibraryThread(func() {
		if callback() != nil {
			out = 1
		}
	})
	return out
}

func (o *EngineOptions) place(a *arena) *cEngineOptions {
	c := place[cEngineOptions](a)
	c.structSize = uint32(unsafe.Sizeof(*c))
	c.threads, c.priority = int32(o.Threads), int32(o.Priority)
	c.drive, c.logLevel = o.Drive, o.LogLevel
	c.memoryLimitBytes, c.kvBudgetBytes = o.MemoryLimitBytes, o.KVBudgetBytes
	c.kvCachedBytes, c.queueMax = o.KVCachedBytes, o.QueueMax
	if len(o.Affinity) > 0 {
		words := []uint64{0}
		for _, cpu := range o.Affinity {
			for len(words) <= cpu/64 {
				words = append(words, 0)
			}
			words[cpu/64] |= 1 << (cpu % 64)
		}
		c.affinity, c.affinityWords = list(a, words)
	}
	if o.Log != nil {
		c.log, c.logRelease = cLogFn, cReleaseFn
		c.logUser = uintptr(cgo.NewHandle(logger(o.Log)))
	}
	if o.Spill != nil {
		c.spillWrite, c.spillRead, c.spillDiscard = cSpillWriteFn, cSpillReadFn, cSpillDiscardFn
		c.spillUser, c.spillRelease = uintptr(cgo.NewHandle(spiller{o.Spill})), cReleaseFn
	}
	return c
}

// NewEngine makes an engine and its threads; nil options are the defaults. Loads the library when
// Load has not: a *LoadError names what was looked for and where.
func NewEngine(options *EngineOptions) (*Engine, error) {
	if err := load(); err != nil {
		return nil, err
	}
	if options == nil {
		options = &EngineOptions{}
	}
	var memory arena
	defer memory.free()
	var pointer *cEngine
	var why *cError
	status := cEngineCreate(options.place(&memory), &pointer, &why)
	if err := toError("new engine", status, why); err != nil {
		return nil, err
	}
	e := &Engine{handle: newHandle("engine", pointer, cEngineDestroy), drive: options.Drive,
		streams: map[*Stream]struct{}{}}
	runtime.SetFinalizer(e, func(e *Engine) { go e.Close() })
	return e, nil
}

// Close cancels all that runs in the engine and lets go of it; new work through its models and
// sessions is refused. It waits for the engine's threads unless a call is still inside, which then
// does. Its models and sessions may be closed before or after. Closing again does nothing.
func (e *Engine) Close() error {
	runtime.SetFinalizer(e, nil)
	e.mutex.Lock()
	for s := range e.streams {
		s.latch.trigger()
	}
	e.mutex.Unlock()
	e.handle.close()
	return nil
}

// Threads is the number of threads that compute.
func (e *Engine) Threads() int {
	pointer, err := e.handle.enter("threads")
	if err != nil {
		return 0
	}
	defer e.handle.leave()
	return int(cEngineThreads(pointer))
}

// Memory tells what the engine has allocated.
func (e *Engine) Memory() (Memory, error) {
	c := cMemory{structSize: uint32(unsafe.Sizeof(cMemory{}))}
	err := use(&e.handle, "memory", func(p *cEngine, why **cError) Status {
		return cMemQuery(p, &c, why)
	})
	return c.public(), err
}

// Metrics tells what the engine does and has done.
func (e *Engine) Metrics() (Metrics, error) {
	c := cMetrics{structSize: uint32(unsafe.Sizeof(cMetrics{}))}
	err := use(&e.handle, "metrics", func(p *cEngine, why **cError) Status {
		return cMetricsQuery(p, &c, why)
	})
	return c.public(), err
}

// RenderMetrics gives them, with histograms, as Prometheus text; label is the value of the label
// `engine` of each line.
func (e *Engine) RenderMetrics(names MetricNames, label string) (string, error) {
	var memory arena
	defer memory.free()
	text, bytes := memory.text(label)
	var out *cBuffer
	err := use(&e.handle, "render metrics", func(p *cEngine, why **cError) Status {
		return cMetricsRender(p, names, text, bytes, &out, why)
	})
	return takeText(out), err
}

// Step is one turn of an engine with DriveHost: it computes, and hands what happened to the
// streams. false when there was nothing to do.
func (e *Engine) Step() (bool, error) {
	var worked int32
	err := use(&e.handle, "step", func(p *cEngine, why **cError) Status {
		return cStep(p, &worked, why)
	})
	if err != nil {
		return false, err
	}
	b := newInbox()
	defer b.free()
	for b.poll(e, 0) == nil && b.count > 0 {
	}
	return worked != 0, nil
}

// inbox is the buffer of a poll.
type inbox struct {
	memory arena
	events []cEvent // In C's memory.
	count  uintptr
}

const inboxEvents = 64

func newInbox() *inbox {
	b := &inbox{}
	first := (*cEvent)(b.memory.alloc(inboxEvents * unsafe.Sizeof(cEvent{})))
	b.events = unsafe.Slice(first, inboxEvents)
	return b
}

func (b *inbox) free() { b.memory.free() }

// poll waits for events as optima_poll does and hands them to their streams.
func (b *inbox) poll(e *Engine, timeoutMs int32) error {
	b.count = 0
	err := use(&e.handle, "poll", func(p *cEngine, why **cError) Status {
		return cPoll(p, &b.events[0], inboxEvents, unsafe.Sizeof(cEvent{}), timeoutMs, &b.count,
			why)
	})
	ended := 0
	for i := range b.events[:b.count] {
		event := &b.events[i]
		cgo.Handle(event.user).Value().(*Stream).deliver(event)
		if event.type_ == EventDone {
			ended++
		}
		cEventRelease(event)
	}
	e.mutex.Lock()
	e.pending -= ended
	e.mutex.Unlock()
	return err
}

// begin puts a stream among those that Close cancels.
func (e *Engine) begin(s *Stream) {
	e.mutex.Lock()
	e.streams[s] = struct{}{}
	e.mutex.Unlock()
}

func (e *Engine) end(s *Stream) {
	e.mutex.Lock()
	delete(e.streams, s)
	e.mutex.Unlock()
}

// submitted makes sure that the events of one more stream are polled: by one goroutine, which
// lives while streams run. With DriveHost, Step polls.
func (e *Engine) submitted() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.pending++
	if e.drive == DriveHost || e.polling || e.pending <= 0 {
		return
	}
	e.polling = true
	go e.keepPolling()
}

func (e *Engine) keepPolling() {
	b := newInbox()
	defer b.free()
	for more := true; more; {
		err := b.poll(e, -1)
		e.mutex.Lock()
		more = err == nil && e.pending > 0
		e.polling = more
		e.mutex.Unlock()
	}
}
