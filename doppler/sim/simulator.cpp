#include "doppler/sim/simulator.h"
