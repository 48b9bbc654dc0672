package optima

import "unsafe"

// Tensor is one tensor of a model file.
type Tensor struct {
	Name  string
	Type  string  // Such as Q4_K.
	Shape []int64 // Innermost (row) length first.
	Bytes int64
}

// Tensors lists the file's tensors, in its order.
func (m *Model) Tensors() ([]Tensor, error) {
	info, err := m.Info()
	if err != nil {
		return nil, err
	}
	tensors := make([]Tensor, info.TensorCount)
	for i := range tensors {
		c := cTensorInfo{structSize: uint32(unsafe.Sizeof(cTensorInfo{}))}
		err := use(&m.handle, "tensor", func(p *cModel, why **cError) Status {
			status := cModelTensorAt(p, int64(i), &c, why)
			if status == StatusOK { // Its strings live as long as the handle.
				tensors[i] = Tensor{cText(c.name, c.nameBytes), cString(c.typeName),
					append([]int64(nil), c.shape[:c.rank]...), c.bytes}
			}
			return status
		})
		if err != nil {
			return nil, err
		}
	}
	return tensors, nil
}

// MetadataKeys lists the file's metadata keys, in its order.
func (m *Model) MetadataKeys() ([]string, error) {
	info, err := m.Info()
	if err != nil {
		return nil, err
	}
	keys := make([]string, info.MetadataCount)
	for i := range keys {
		err := m.metadata(func(p *cModel, c *cMetadata, why **cError) Status {
			return cModelMetadataAt(p, int64(i), c, why)
		}, func(c *cMetadata) { keys[i] = cText(c.key, c.keyBytes) })
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// Metadata is a value by key: int64, float64, bool, string, a slice of one of them, or nil when
// there is no such key.
func (m *Model) Metadata(key string) (any, error) {
	var memory arena
	defer memory.free()
	text, bytes := memory.text(key)
	var value any
	var found cMetadata
	err := m.metadata(func(p *cModel, c *cMetadata, why **cError) Status {
		return cModelMetadataFind(p, text, bytes, c, why)
	}, func(c *cMetadata) { value, found = c.single(), *c })
	if err != nil {
		return nil, err
	}
	switch found.kind {
	case metadataKindIntegers:
		return items[int64](m, &found)
	case metadataKindReals:
		return items[float64](m, &found)
	case metadataKindBooleans:
		return items[bool](m, &found)
	case metadataKindStrings:
		return items[string](m, &found)
	}
	return value, nil
}

func items[T any](m *Model, array *cMetadata) (any, error) {
	values := make([]T, array.count)
	for i := range values {
		err := m.metadata(func(p *cModel, c *cMetadata, why **cError) Status {
			return cModelMetadataItem(p, array.index, int64(i), c, why)
		}, func(c *cMetadata) { values[i] = c.single().(T) })
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// metadata reads one value; take copies it while the model is held.
func (m *Model) metadata(read func(*cModel, *cMetadata, **cError) Status,
	take func(*cMetadata)) error {
	c := cMetadata{structSize: uint32(unsafe.Sizeof(cMetadata{}))}
	return use(&m.handle, "metadata", func(p *cModel, why **cError) Status {
		status := read(p, &c, why)
		if status == StatusOK {
			take(&c)
		}
		return status
	})
}

// single is a value that is no array; nil for none and for arrays.
func (c *cMetadata) single() any {
	switch c.kind {
	case metadataKindInteger:
		return c.integer
	case metadataKindReal:
		return c.real
	case metadataKindBoolean:
		return c.integer == 1
	case metadataKindString:
		return cText(c.string, c.stringBytes)
	}
	return nil
}
