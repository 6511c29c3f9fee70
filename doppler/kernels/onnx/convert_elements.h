#pragma once

#include "doppler/program/onnx/tensor.h"

namespace doppler::model {

// The type in which elements are computed: f16 and bf16 in f32, integers of up to 32 bits and booleans in i64.
Element wide_of(Element element);

// Convert elements of memory to and from one of the four types that kernels compute in. Integers wrap; numbers that an
// integer cannot hold become what the processor makes of them, without undefined behaviour; to boolean is "not zero".
void load_elements(Element from, const std::byte* memory, float* out, std::size_t count);
void load_elements(Element from, const std::byte* memory, double* out, std::size_t count);
void load_elements(Element from, const std::byte* memory, std::int64_t* out, std::size_t count);
void load_elements(Element from, const std::byte* memory, std::uint64_t* out, std::size_t count);
void store_elements(Element to, const float* values, std::byte* memory, std::size_t count);
void store_elements(Element to, const double* values, std::byte* memory, std::size_t count);
void store_elements(Element to, const std::int64_t* values, std::byte* memory, std::size_t count);
void store_elements(Element to, const std::uint64_t* values, std::byte* memory, std::size_t count);

// Converts between any two types, as Cast does.
void cast_elements(Element from, const std::byte* memory, Element to, std::byte* out, std::size_t count);

}  // namespace doppler::model
