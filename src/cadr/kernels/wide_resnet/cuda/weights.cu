// Weights from fp32, in whatever memory order the parameters have, to bf16 in the orders that convolutions read.
struct Layout {
    const float* from;
    long long to;  // elements from the beginning of the target
    long long outputs, inputs, padded, kernel;  // `padded` inputs are written, those beyond `inputs` as zeros
    long long from_output, from_input, from_row, from_column;  // distances in the source
    long long to_output, to_tap, to_input, mirrored;           // and in the target, where taps may be in reverse
};

// A row of blocks for each layout.
extern "C" __global__ void lay_out(const Layout* __restrict__ layouts, u16* __restrict__ target) {
    const Layout layout = layouts[blockIdx.y];
    const int padded = (int)layout.padded, kernel = (int)layout.kernel, taps = kernel * kernel, count = (int)layout.outputs * taps * padded;
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < count; e += gridDim.x * blockDim.x) {
        const int input = e % padded, tap = e / padded % taps, output = e / (padded * taps);
        const long long from = output * layout.from_output + input * layout.from_input + tap / kernel * layout.from_row + tap % kernel * layout.from_column;
        const int place = layout.mirrored ? taps - 1 - tap : tap;
        const float value = input < layout.inputs ? layout.from[from] : 0.f;
        target[layout.to + output * layout.to_output + place * layout.to_tap + input * layout.to_input] = (u16)pack(value, value);
    }
}
