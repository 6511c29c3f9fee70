# cmake -DINPUT=file -DOUTPUT=file.cpp -DNAME=name -P embed_bytes.cmake: writes a source that defines the bytes of INPUT
# as `doppler::NAME` and their number as `doppler::NAMESize`. A few dozen kilobytes take a fraction of a second.
file(READ ${INPUT} hexadecimal HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hexadecimal}")
string(REPEAT "0x..," 24 line)
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <cstddef>

namespace doppler {

extern const unsigned char ${NAME}[];
extern const std::size_t ${NAME}Size;
const unsigned char ${NAME}[] = {
${bytes}};
const std::size_t ${NAME}Size = sizeof(${NAME});

}  // namespace doppler
")
