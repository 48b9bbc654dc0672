// Log messages go to the host's callback and nowhere else; without one they are dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace optima {

enum class LogLevel : int32_t { error = 1, warning = 2, info = 3, debug = 4 };

// Called on any thread of the engine; must not call back into the engine.
using LogSink = std::function<void(LogLevel, std::string_view message)>;

}  // namespace optima
