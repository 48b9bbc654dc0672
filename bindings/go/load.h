/* Loading of libsitsoptima; see load.go. */
#pragma once

#include "optima.h"

/* Loads the library and gives its function table of ABI `abi`, NULL when it has none. A name
 * without a slash is searched for. Returns NULL, or why it failed: to be freed. */
char* optima_go_load(const char* name, uint32_t abi, const optima_api_v1** table);

/* The table that all calls use from now on. */
void optima_go_use(const optima_api_v1* table);
