#include "doppler/report/table.h"
