/* dlopen with the reason of a failure kept: dlerror's text is of its thread, and Go may go on with
 * another one after a call. */
#include "load.h"

#include <dlfcn.h>
#include <string.h>

const optima_api_v1* optima_go_api = NULL;

char* optima_go_load(const char* name, uint32_t abi, const optima_api_v1** table) {
  const optima_api_v1* (*get_api)(uint32_t) = NULL;
  void* symbol = NULL;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  *table = NULL;
  if (library != NULL) symbol = dlsym(library, "optima_get_api");
  if (symbol == NULL) {
    char* why = strdup(dlerror());
    if (library != NULL) dlclose(library);
    return why;
  }
  memcpy(&get_api, &symbol, sizeof get_api); /* ISO C has no cast from data to function. */
  *table = get_api(abi);
  return NULL;
}

void optima_go_use(const optima_api_v1* table) { optima_go_api = table; }
