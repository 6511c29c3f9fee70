#include "doppler/sim/bounds.h"
