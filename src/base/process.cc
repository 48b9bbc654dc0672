#include "base/process.h"

#include <unistd.h>

namespace optima {

int64_t process_id() {
  return ::getpid();
}

}  // namespace optima
