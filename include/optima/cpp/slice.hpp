// The mode of the C++ binding, and views of what others own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

// OPTIMA_NO_EXCEPTIONS: calls that can fail return Expected<T> instead of throwing; always so where
// the compiler has no exceptions. OPTIMA_LOAD: the library is opened when it is needed, not linked.
// Each mode has an inline namespace, so that parts of a program may differ.
#if !defined(OPTIMA_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define OPTIMA_NO_EXCEPTIONS
#endif
#if defined(OPTIMA_NO_EXCEPTIONS) && defined(OPTIMA_LOAD)
#define OPTIMA_CPP_MODE expected_loaded
#elif defined(OPTIMA_NO_EXCEPTIONS)
#define OPTIMA_CPP_MODE expected_linked
#elif defined(OPTIMA_LOAD)
#define OPTIMA_CPP_MODE throwing_loaded
#else
#define OPTIMA_CPP_MODE throwing_linked
#endif

namespace optima {
inline namespace OPTIMA_CPP_MODE {

/// Items that something else owns; as std::span, which C++17 has not.
template <typename T>
class Slice {
 public:
  Slice() = default;
  Slice(T* data, std::size_t size) : data_(data), size_(size) {}
  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

// Strings as C takes them. Points into the strings, which must outlive it.
class StringTable {
 public:
  template <typename Strings>
  void assign(const Strings& strings) {
    data_.clear();
    bytes_.clear();
    for (const auto& string : strings) {
      data_.push_back(string.data());
      bytes_.push_back(string.size());
    }
  }
  const char* const* data() const { return data_.empty() ? nullptr : data_.data(); }
  const std::size_t* bytes() const { return bytes_.empty() ? nullptr : bytes_.data(); }

 private:
  std::vector<const char*> data_;
  std::vector<std::size_t> bytes_;
};

}  // namespace detail
}  // namespace OPTIMA_CPP_MODE
}  // namespace optima
