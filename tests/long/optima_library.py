"""The few calls of the C ABI that scripts make, through string-keyed options: no struct layout is
repeated here."""

import ctypes

# OPTIMA_OPTIONS_ENGINE, _SESSION, _REQUEST
ENGINE, SESSION, REQUEST = 1, 3, 4


class Library:
    """Statuses as exceptions, handles as plain pointers."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.optima_error_message.restype = ctypes.c_char_p
        self.lib.optima_options_struct.restype = ctypes.c_void_p
        self.lib.optima_result_prompt_logprobs.restype = ctypes.POINTER(ctypes.c_float)

    def call(self, name, *args):
        error = ctypes.c_void_p()
        status = getattr(self.lib, name)(*args, ctypes.byref(error))
        if status != 0:
            message = self.lib.optima_error_message(error).decode()
            raise RuntimeError(f"{name}: {message}")

    def make(self, name, *args):
        out = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(out))
        return out

    def options(self, kind, values, pointers=()):
        out = self.make("optima_options_create", ctypes.c_int32(kind))
        for key, value in values.items():
            key, value = key.encode(), str(value).encode()
            self.call("optima_options_set", out, key, ctypes.c_size_t(len(key)), value,
                      ctypes.c_size_t(len(value)))
        for key, pointer in dict(pointers).items():
            key = key.encode()
            self.call("optima_options_set_pointer", out, key, ctypes.c_size_t(len(key)), pointer)
        return out

    def struct(self, options):
        return ctypes.c_void_p(self.lib.optima_options_struct(options))

    def open_model(self, path, threads=0):
        """(engine, model)"""
        options = self.options(ENGINE, {"threads": threads})
        engine = self.make("optima_engine_create", self.struct(options))
        self.lib.optima_options_destroy(options)
        name = str(path).encode()
        return engine, self.make("optima_model_open_path", engine, name,
                                 ctypes.c_size_t(len(name)), None)

    def close_model(self, engine, model):
        self.lib.optima_model_destroy(model)
        self.lib.optima_engine_destroy(engine)

    def logits(self, session, ids, positions, vocabulary):
        """Rows of the logits that follow ids[:p + 1] for each p of positions, in one array."""
        out = (ctypes.c_float * (len(positions) * vocabulary))()
        options = self.options(
            REQUEST,
            {"prompt_ids": ",".join(map(str, ids)), "prompt_only": 1,
             "logits_positions": ",".join(map(str, positions)), "logits_capacity": len(out)},
            {"logits_out": ctypes.cast(out, ctypes.c_void_p)})
        self.call("optima_session_reset", session)
        result = self.make("optima_generate", session, self.struct(options))
        self.lib.optima_result_destroy(result)
        self.lib.optima_options_destroy(options)
        return out
