package optima

import "unsafe"

// Version is the release of the loaded library, such as "1.1.0".
func Version() (string, error) {
	if err := load(); err != nil {
		return "", err
	}
	return cString(cVersion()), nil
}

// Features tells what the loaded library can do.
func Features() (Feature, error) {
	if err := load(); err != nil {
		return 0, err
	}
	return Feature(cFeatures()), nil
}

// ProbeOptions says what Probe measures; the zero value measures nothing.
type ProbeOptions struct {
	// Threads is the most to measure with. 0 = as many as an engine would use.
	Threads int
	// Flags say what to measure: seconds of full load.
	Flags ProbeFlags
	// ReadBytes is the size of the buffer for ProbeRead. 0 = 64 MiB.
	ReadBytes int64
}

// Probe tells what the machine has, and what it measures.
func Probe(options ProbeOptions) (ProbeReport, error) {
	if err := load(); err != nil {
		return ProbeReport{}, err
	}
	in := cProbeOptions{structSize: uint32(unsafe.Sizeof(cProbeOptions{})),
		threads: int32(options.Threads), flags: uint32(options.Flags),
		readBytes: options.ReadBytes}
	out := cProbeReport{structSize: uint32(unsafe.Sizeof(cProbeReport{}))}
	var why *cError
	status := cProbe(&in, &out, &why)
	return out.public(), toError("probe", status, why)
}
