// JSON Schema, the part of draft 2020-12 that can be honoured to the letter. What is written under
// a schema is valid under it; what is valid can be written, in any order of members, but for the
// forms named below.
//
//   type, enum, const; anyOf; allOf; $ref and $defs ("#" and "#/..."), recursion included
//   oneOf           where any two branches are shown to have nothing in common; else refused
//   object          properties, required, additionalProperties, patternProperties (up to 4),
//                   minProperties and maxProperties; minProperties above 1 only where every name
//                   is listed, since an unlisted name might come twice
//   array           items, prefixItems, minItems, maxItems
//   string          minLength, maxLength, pattern (regex.h), format (formats.h)
//   number          minimum, maximum, exclusiveMinimum, exclusiveMaximum, exactly; multipleOf for
//                   whole numbers
//
// Forms: those of json_rules.h and number_rules.h. An integer is written in digits alone. Names,
// constants and strings under a pattern or format have escapes only where one is needed.
// Annotations (title, description, default, examples, deprecated, readOnly, writeOnly, $schema,
// $id, $comment, content*, x-...) are passed over. Every other keyword is refused, by name and
// place: nothing is ignored.
#pragma once

#include <string_view>

#include "base/status.h"
#include "sampling/grammar/program.h"

namespace optima::sampling::grammar {

Result<StateId> compile_schema(std::string_view text, Builder& builder);

}  // namespace optima::sampling::grammar
