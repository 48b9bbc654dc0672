// The formats of JSON Schema that are honoured, as regular expressions for the whole text.
#pragma once

#include <string>
#include <string_view>

namespace optima::sampling::grammar {

// Empty for a format that is not known. Known: date, time, date-time (RFC 3339, with the true
// length of every month), duration (ISO 8601), email, hostname, ipv4, ipv6, uri, uuid.
std::string format_pattern(std::string_view format);
std::string_view known_formats();  // for messages

}  // namespace optima::sampling::grammar
