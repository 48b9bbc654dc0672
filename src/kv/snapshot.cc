// Writing and reading snapshots. Both walk the same list of sections; the reader knows each size
// from the identity and the number of tokens, so that a damaged stream can make it allocate no more
// than a good one of the same session.
#include "kv/snapshot.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/text.h"

namespace optima::kv {
namespace {

static_assert(std::endian::native == std::endian::little, "the stream is little-endian");

constexpr char kMagic[8] = {'O', 'P', 'T', 'I', 'M', 'A', 'K', 'V'};

enum class Section : uint32_t { identity = 1, tokens = 2, pages = 3, end = 4 };

// What the payload of an identity section says.
struct IdentityRecord {
  uint64_t model;
  uint64_t rotation;
  uint32_t kv_type;
  uint32_t groups;
  int64_t tokens;
  int64_t length;  // tokens whose KV follows
};
static_assert(sizeof(IdentityRecord) == 40);

struct SectionHead {
  uint32_t kind;
  uint32_t group;
  int64_t bytes;
};
static_assert(sizeof(SectionHead) == 16);

constexpr int64_t kStartBytes = sizeof kMagic + 2 * sizeof(uint32_t);
constexpr int64_t kSectionBytes = sizeof(SectionHead) + sizeof(uint64_t);  // beside the payload

int64_t section_bytes(const PageTable& table, size_t group) {
  return static_cast<int64_t>(table.pages_seen(group).size()) * table.groups()[group].page_bytes();
}

int64_t table_bytes(const PageTable& table) {
  int64_t bytes = 0;
  for (size_t group = 0; group < table.groups().size(); ++group)
    bytes += section_bytes(table, group);
  return bytes;
}

Status io_error(const char* what) {
  return Status(Code::io, text("the snapshot could not be ", what));
}

class Writer {
 public:
  explicit Writer(const SnapshotWrite& write) : write_(write) {}

  Status raw(const void* from, int64_t bytes) const {
    return write_(from, bytes) ? Status() : io_error("written");
  }
  Status begin(Section kind, uint32_t group, int64_t bytes) {
    const SectionHead head{static_cast<uint32_t>(kind), group, bytes};
    XXH3_64bits_reset(&state_);
    return payload(&head, sizeof head);
  }
  Status payload(const void* from, int64_t bytes) {
    if (bytes == 0) return {};  // of an empty sequence: no pointer, and nothing to ask for
    XXH3_64bits_update(&state_, from, static_cast<size_t>(bytes));
    return raw(from, bytes);
  }
  Status finish() {
    const uint64_t sum = XXH3_64bits_digest(&state_);
    return raw(&sum, sizeof sum);
  }

 private:
  const SnapshotWrite& write_;
  XXH3_state_t state_{};
};

class Reader {
 public:
  explicit Reader(const SnapshotRead& read) : read_(read) {}

  Status raw(void* into, int64_t bytes) const {
    return read_(into, bytes) ? Status() : io_error("read to its end");
  }
  // The next section has to be this one.
  Status begin(Section kind, uint32_t group, int64_t bytes) {
    SectionHead head{};
    XXH3_64bits_reset(&state_);
    OPTIMA_TRY(payload(&head, sizeof head));
    if (head.kind == static_cast<uint32_t>(kind) && head.group == group && head.bytes == bytes)
      return {};
    return Status(Code::format, text("the snapshot is damaged: section ", head.kind, " of group ",
                                     head.group, " with ", head.bytes, " bytes, expected were ",
                                     static_cast<uint32_t>(kind), ", ", group, " and ", bytes));
  }
  Status payload(void* into, int64_t bytes) {
    if (bytes == 0) return {};
    OPTIMA_TRY(raw(into, bytes));
    XXH3_64bits_update(&state_, into, static_cast<size_t>(bytes));
    return {};
  }
  Status finish() {
    const uint64_t sum = XXH3_64bits_digest(&state_);
    uint64_t written = 0;
    OPTIMA_TRY(raw(&written, sizeof written));
    if (sum == written) return {};
    return Status(Code::format, text("the snapshot is damaged: a section's checksum is ", sum,
                                     ", written was ", written));
  }

 private:
  const SnapshotRead& read_;
  XXH3_state_t state_{};
};

Status check_start(Reader& reader) {
  char magic[sizeof kMagic];
  uint32_t version[2];
  OPTIMA_TRY(reader.raw(magic, sizeof magic));
  OPTIMA_TRY(reader.raw(version, sizeof version));
  if (std::memcmp(magic, kMagic, sizeof magic) != 0)
    return Status(Code::format, "not a snapshot: it does not begin with OPTIMAKV");
  if (version[0] != kSnapshotVersion)
    return Status(Code::version,
                  text("a snapshot of version ", version[0], ", known is ", kSnapshotVersion),
                  {version[0], -1, kSnapshotVersion});
  return {};
}

Status check_identity(const IdentityRecord& have, const SnapshotIdentity& wanted) {
  const auto differs = [](const char* what, uint64_t of, uint64_t here) {
    return Status(Code::version, text("the snapshot's ", what, " is ", of, ", here it is ", here));
  };
  if (have.model != wanted.model) return differs("model", have.model, wanted.model);
  if (have.kv_type != wanted.kv_type) return differs("KV type", have.kv_type, wanted.kv_type);
  if (have.rotation != wanted.rotation)
    return differs("context, on which the rotary frequencies depend,", have.rotation,
                   wanted.rotation);
  return {};
}

Result<IdentityRecord> read_identity(Reader& reader, const SnapshotIdentity& wanted,
                                     const SnapshotLimits& limits, size_t groups) {
  IdentityRecord record{};
  OPTIMA_TRY(reader.begin(Section::identity, 0, sizeof record));
  OPTIMA_TRY(reader.payload(&record, sizeof record));
  OPTIMA_TRY(reader.finish());
  OPTIMA_TRY(check_identity(record, wanted));
  if (record.groups != groups)
    return Status(Code::version,
                  text("the snapshot has ", record.groups, " KV groups, the model ", groups));
  if (record.tokens < 0 || record.length < 0 || record.length > record.tokens)
    return Status(Code::format, text("the snapshot is damaged: ", record.tokens,
                                     " tokens and the KV of ", record.length));
  if (record.tokens > limits.tokens_max)
    return Status(
        Code::context_full,
        text("the snapshot has ", record.tokens, " tokens, the context holds ", limits.tokens_max),
        {record.tokens, limits.tokens_max, limits.tokens_max});
  return record;
}

Result<std::vector<int32_t>> read_tokens(Reader& reader, int64_t count, int32_t vocabulary) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  const auto bytes = static_cast<int64_t>(tokens.size() * sizeof(int32_t));
  OPTIMA_TRY(reader.begin(Section::tokens, 0, bytes));
  OPTIMA_TRY(reader.payload(tokens.data(), bytes));
  OPTIMA_TRY(reader.finish());
  for (const int32_t id : tokens)
    if (id < 0 || id >= vocabulary)
      return Status(Code::format,
                    text("the snapshot has token ", id, ", the vocabulary ends at ", vocabulary));
  return tokens;
}

Status read_pages(Reader& reader, PageTable& table) {
  for (size_t group = 0; group < table.groups().size(); ++group) {
    const int64_t bytes = table.groups()[group].page_bytes();
    OPTIMA_TRY(
        reader.begin(Section::pages, static_cast<uint32_t>(group), section_bytes(table, group)));
    for (unsigned char* page : table.pages_seen(group)) OPTIMA_TRY(reader.payload(page, bytes));
    OPTIMA_TRY(reader.finish());
  }
  OPTIMA_TRY(reader.begin(Section::end, 0, 0));
  return reader.finish();
}

Status write_pages(Writer& writer, const PageTable& table, size_t group,
                   const ClearPositions& clear) {
  const int64_t bytes = table.groups()[group].page_bytes();
  const std::span<unsigned char* const> pages = table.pages_seen(group);
  const int64_t open = table.length() % kPageTokens;  // written positions of the last page
  OPTIMA_TRY(
      writer.begin(Section::pages, static_cast<uint32_t>(group), section_bytes(table, group)));
  for (size_t i = 0; i + (open > 0 ? 1 : 0) < pages.size(); ++i)
    OPTIMA_TRY(writer.payload(pages[i], bytes));
  if (open > 0 && !pages.empty()) {
    std::vector<unsigned char> last(pages.back(), pages.back() + bytes);
    clear(group, open, last.data());
    OPTIMA_TRY(writer.payload(last.data(), bytes));
  }
  return writer.finish();
}

}  // namespace

int64_t snapshot_bytes(const PageTable& table, int64_t tokens) {
  const auto sections = 3 + static_cast<int64_t>(table.groups().size());
  return kStartBytes + sections * kSectionBytes + static_cast<int64_t>(sizeof(IdentityRecord)) +
         tokens * static_cast<int64_t>(sizeof(int32_t)) + table_bytes(table);
}

Status write_snapshot(const SnapshotIdentity& identity, std::span<const int32_t> tokens,
                      const PageTable& table, const ClearPositions& clear,
                      const SnapshotWrite& write) {
  Writer writer(write);
  const uint32_t version[2] = {kSnapshotVersion, 0};
  OPTIMA_TRY(writer.raw(kMagic, sizeof kMagic));
  OPTIMA_TRY(writer.raw(version, sizeof version));
  const IdentityRecord record{identity.model,
                              identity.rotation,
                              identity.kv_type,
                              static_cast<uint32_t>(table.groups().size()),
                              static_cast<int64_t>(tokens.size()),
                              table.length()};
  OPTIMA_TRY(writer.begin(Section::identity, 0, sizeof record));
  OPTIMA_TRY(writer.payload(&record, sizeof record));
  OPTIMA_TRY(writer.finish());
  const auto token_bytes = static_cast<int64_t>(tokens.size_bytes());
  OPTIMA_TRY(writer.begin(Section::tokens, 0, token_bytes));
  OPTIMA_TRY(writer.payload(tokens.data(), token_bytes));
  OPTIMA_TRY(writer.finish());
  for (size_t group = 0; group < table.groups().size(); ++group)
    OPTIMA_TRY(write_pages(writer, table, group, clear));
  OPTIMA_TRY(writer.begin(Section::end, 0, 0));
  return writer.finish();
}

Result<std::vector<int32_t>> read_snapshot(const SnapshotIdentity& identity,
                                           const SnapshotLimits& limits, PageTable& table,
                                           const SnapshotRead& read, std::mutex* table_mutex) {
  const auto lock = [table_mutex] {
    return table_mutex == nullptr ? std::unique_lock<std::mutex>()
                                  : std::unique_lock<std::mutex>(*table_mutex);
  };
  Reader reader(read);
  OPTIMA_TRY(check_start(reader));
  OPTIMA_ASSIGN(const IdentityRecord record,
                read_identity(reader, identity, limits, table.groups().size()));
  OPTIMA_ASSIGN(std::vector<int32_t> tokens, read_tokens(reader, record.tokens, limits.vocabulary));
  {
    const auto locked = lock();
    OPTIMA_TRY(table.make_length(record.length));
  }
  Status status = read_pages(reader, table);
  if (status.ok()) return tokens;
  const auto locked = lock();
  table.truncate(0);
  return status;
}

}  // namespace optima::kv
