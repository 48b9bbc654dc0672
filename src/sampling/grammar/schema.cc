#include "sampling/grammar/schema.h"
namespace optima::sampling::grammar {
Result<StateId> compile_schema(std::string_view, Builder&) {
  return Status(Code::unsupported, "x");
}
}  // namespace optima::sampling::grammar
