#include "doppler/kernels/host/processor.h"
#include "doppler/kernels/onnx/loops.h"

namespace doppler::model {

#define DOPPLER_COPY(name)                     \
  namespace name {                             \
  const FloatLoops<float>& loops_of_float();   \
  const FloatLoops<double>& loops_of_double(); \
  }
DOPPLER_COPY(baseline)
#if defined(__x86_64__)
DOPPLER_COPY(avx2)
DOPPLER_COPY(avx512)
#endif

template <>
const FloatLoops<float>& float_loops<float>() {
#if defined(__x86_64__)
  const ProcessorFeatures features = processor_features();
  if (features.avx512) return avx512::loops_of_float();
  if (features.avx2) return avx2::loops_of_float();
#endif
  return baseline::loops_of_float();
}

template <>
const FloatLoops<double>& float_loops<double>() {
#if defined(__x86_64__)
  const ProcessorFeatures features = processor_features();
  if (features.avx512) return avx512::loops_of_double();
  if (features.avx2) return avx2::loops_of_double();
#endif
  return baseline::loops_of_double();
}

}  // namespace doppler::model
