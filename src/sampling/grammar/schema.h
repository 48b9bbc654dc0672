#pragma once
#include <string_view>
#include "base/status.h"
#include "sampling/grammar/program.h"
namespace optima::sampling::grammar {
Result<StateId> compile_schema(std::string_view text, Builder& builder);
}
