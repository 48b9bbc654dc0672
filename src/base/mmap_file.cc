// Maps model files. Model weights are read straight from the page cache, so that loading costs no
// copy and two processes share one file's memory. Everything that can be wrong with a path or a
// range is found here, before the mapping exists; src/model/source.cc adds the name to messages.
#include "base/mmap_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

namespace optima {
namespace {

// strerror_r is one of two functions, by the C library's feature macros: glibc's returns the text
// (not always in `buffer`), POSIX's returns a code and fills `buffer`.
[[maybe_unused]] const char* error_text(const char* text, const char*) {
  return text;
}
[[maybe_unused]] const char* error_text(int code, const char* buffer) {
  return code == 0 ? buffer : "unknown error";
}

Status system_error(std::string_view action, int error) {
  char buffer[256] = "";
  const char* description = error_text(strerror_r(error, buffer, sizeof buffer), buffer);
  return Status(Code::io,
                text(action, " failed: ", std::string_view(description), " (errno ", error, ")"));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  // Never repeated: on Linux the number is free again even when close reports EINTR.
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

// The range with its length filled in, or why the file does not have it.
Result<FileRange> resolve(FileRange range, int64_t file_bytes) {
  if (range.offset < 0 || range.length < 0)
    return Status(Code::invalid_argument,
                  text("a negative range: offset ", range.offset, ", length ", range.length));
  if (file_bytes == 0) return Status(Code::format, "the file is empty (0 bytes)");
  if (range.offset >= file_bytes)
    return Status(
        Code::invalid_argument,
        text("offset ", range.offset, " is not inside the file of ", file_bytes, " bytes"),
        {range.offset, file_bytes, -1});
  const int64_t available = file_bytes - range.offset;
  if (range.length > available)
    return Status(Code::invalid_argument,
                  text("length ", range.length, " wanted at offset ", range.offset, ", but only ",
                       available, " bytes follow in the file of ", file_bytes, " bytes"),
                  {range.length, available, -1});
  return FileRange{range.offset, range.length == 0 ? available : range.length};
}

}  // namespace

Result<MmapFile> MmapFile::open(const std::string& path) {
  if (path.empty()) return Status(Code::invalid_argument, "the path is empty");
  if (path.find('\0') != std::string::npos)
    return Status(Code::invalid_argument, "the path contains a zero byte");
  int value = -1;
  do {
    // O_NONBLOCK: opening a FIFO must not wait for a writer; it changes nothing for files.
    value = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (value < 0 && errno == EINTR);
  if (value < 0) return system_error("open", errno);
  const Descriptor descriptor(value);
  return map(descriptor.get(), {});
}

Result<MmapFile> MmapFile::map(int descriptor, FileRange range) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return system_error("fstat", errno);
  if (S_ISDIR(info.st_mode)) return Status(Code::io, "is a directory, not a file");
  if (!S_ISREG(info.st_mode)) return Status(Code::io, "is not a regular file and cannot be mapped");
  OPTIMA_ASSIGN(const FileRange bytes, resolve(range, info.st_size));

  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t lead = bytes.offset % page;
  const auto mapping_bytes = static_cast<size_t>(lead + bytes.length);
  void* mapping =
      ::mmap(nullptr, mapping_bytes, PROT_READ, MAP_PRIVATE, descriptor, bytes.offset - lead);
  if (mapping == MAP_FAILED) {
    Status status = system_error(text("mmap of ", mapping_bytes, " bytes"), errno);
    return status;
  }
  MmapFile file;
  file.mapping_ = mapping;
  file.mapping_bytes_ = mapping_bytes;
  file.view_ = {static_cast<const std::byte*>(mapping) + lead, static_cast<size_t>(bytes.length)};
  return file;
}

MmapFile::~MmapFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
}

void MmapFile::prefetch() const {
  // Only a hint: a system that refuses it reads the pages on first use, as without it.
  if (mapping_ != nullptr) (void)::madvise(mapping_, mapping_bytes_, MADV_WILLNEED);
}

}  // namespace optima
