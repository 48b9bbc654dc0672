// Each pattern follows the grammar of its standard; sub-patterns are groups, so that they can be
// put together.
#include "sampling/grammar/formats.h"

#include "base/text.h"

namespace optima::sampling::grammar {
namespace {

// RFC 3339. Year 0000 is left out: many readers have no such year.
std::string date() {
  const std::string_view long_month = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])";
  const std::string_view short_month = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)";
  const std::string_view february = "02-(?:0[1-9]|1[0-9]|2[0-8])";
  const std::string_view year = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9][0-9]|[1-9][0-9][0-9][0-9])";
  const std::string_view leap_year =
      "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
  return text("(?:", year, "-(?:", long_month, '|', short_month, '|', february, ")|", leap_year,
              "-02-29)");
}

std::string time() {
  const std::string_view clock = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
  return text("(?:", clock, ":[0-5][0-9](?:\\.[0-9]+)?(?:[Zz]|[+-]", clock, "))");
}

// ISO 8601 as RFC 3339, appendix A has it.
std::string duration() {
  const std::string_view clock = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  const std::string_view day = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
  return text("P(?:", day, "(?:", clock, ")?|", clock, "|[0-9]+W)");
}

std::string host_name() {
  const std::string_view label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  return text("(?:", label, "(?:\\.", label, ")*)");
}

std::string email() {  // RFC 5322's dot-atom, and a host name
  const std::string_view atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  return text("(?:", atom, "(?:\\.", atom, ")*@", host_name(), ')');
}

std::string ipv4() {
  const std::string_view part = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  return text("(?:", part, "(?:\\.", part, "){3})");
}

std::string ipv6() {  // the nine forms of RFC 3986
  const std::string_view word = "[0-9A-Fa-f]{1,4}";
  const std::string last = text("(?:", word, ':', word, '|', ipv4(), ')');
  const auto before = [&](int count) {
    return count == 0 ? std::string("::") : text("(?:(?:", word, ":){0,", count, '}', word, ")?::");
  };
  std::string all = text("(?:(?:", word, ":){6}", last, "|::(?:", word, ":){5}", last);
  all += text("|(?:", word, ")?::(?:", word, ":){4}", last);
  for (int count = 1; count <= 4; ++count)
    all += text('|', before(count), "(?:", word, ":){", 4 - count, '}', last);
  all += text('|', before(5), word, '|', before(6), ')');
  return all;
}

std::string uri() {  // RFC 3986
  const std::string_view escape = "%[0-9A-Fa-f][0-9A-Fa-f]";
  const std::string character = text("(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|", escape, ')');
  const std::string name = text("(?:[A-Za-z0-9._~!$&'()*+,;=-]|", escape, ")*");
  const std::string user = text("(?:[A-Za-z0-9._~!$&'()*+,;=:-]|", escape, ")*");
  const std::string authority =
      text("(?:", user, "@)?(?:\\[", ipv6(), "\\]|", name, ")(?::[0-9]*)?");
  const std::string path = text("(?:/", character, "*)*");
  const std::string rootless = text(character, '+', path);
  const std::string tail = text("(?:", character, "|[/?])*");
  return text("(?:[A-Za-z][A-Za-z0-9+.-]*:(?://", authority, path, "|/(?:", rootless, ")?|",
              rootless, "|)(?:\\?", tail, ")?(?:#", tail, ")?)");
}

}  // namespace

std::string format_pattern(std::string_view format) {
  if (format == "date") return date();
  if (format == "time") return time();
  if (format == "date-time") return text(date(), "[Tt]", time());
  if (format == "duration") return duration();
  if (format == "email") return email();
  if (format == "hostname") return host_name();
  if (format == "ipv4") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "uri") return uri();
  if (format == "uuid")
    return "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
  return {};
}

std::string_view known_formats() {
  return "date, time, date-time, duration, email, hostname, ipv4, ipv6, uri, uuid";
}

}  // namespace optima::sampling::grammar
