// The instruction sets of the CPU at hand.
#pragma once

#include "kernels/isa.h"

namespace optima::backend::cpu {

kernels::IsaMask host_isa();

}  // namespace optima::backend::cpu
