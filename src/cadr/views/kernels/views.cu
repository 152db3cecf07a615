// Weak and strong views, one block an image, the image in shared memory from first to last operation.
// Draws the same numbers and does the same arithmetic as the tensor code beside it (weak.py, randaugment.py, operations.py,
// affine.py, tables.py, pixels.py), which is the reference; compiled without contraction, so products and sums round alike.
typedef unsigned char u8;
typedef unsigned long long u64;

__device__ __forceinline__ u64 mix(u64 b) {
    b = (b ^ (b >> 30)) * 0xBF58476D1CE4E5B9ull;
    b = (b ^ (b >> 27)) * 0x94D049BB133111EBull;
    return b ^ (b >> 31);
}
__device__ __forceinline__ u64 split(u64 key, u64 stream) { return mix(key + (stream + 1) * 0xA0761D6478BD642Full); }
__device__ __forceinline__ float uniform(u64 key, u64 position) {
    return (float)(mix(key + (position + 1) * 0x9E3779B97F4A7C15ull) >> 40) * 0x1p-24f;
}
__device__ __forceinline__ int reflect(int p, int size) { return size - 1 - abs(size - 1 - abs(p)); }

struct Shift { int down, right; bool mirrored; };
__device__ __forceinline__ Shift draw_shift(u64 key, int i, int n, int height, int width, int reach, int flip) {
    const int reach_y = min(reach, height - 1), reach_x = min(reach, width - 1);
    return {(int)(uniform(key, i) * (float)(2 * reach_y + 1)) - reach_y,
            (int)(uniform(key, (u64)n + i) * (float)(2 * reach_x + 1)) - reach_x, flip && uniform(key, 2ull * n + i) < 0.5f};
}
__device__ __forceinline__ int shifted(Shift s, int y, int x, int height, int width) {
    return reflect(y + s.down, height) * width + reflect((s.mirrored ? width - 1 - x : x) + s.right, width);
}

extern "C" __global__ void weak_view(const u8* __restrict__ images, const u64* __restrict__ key, u8* __restrict__ views, int n,
                                     int height, int width, int reach, int flip) {
    const int i = blockIdx.x, pixels = height * width;
    const Shift s = draw_shift(*key, i, n, height, width, reach, flip);
    const u8* image = images + (long)i * pixels * 3;
    u8* view = views + (long)i * pixels * 3;
    for (int p = threadIdx.x; p < pixels; p += blockDim.x) {
        const int from = shifted(s, p / width, p % width, height, width);
#pragma unroll
        for (int c = 0; c < 3; c++) view[p * 3 + c] = image[from * 3 + c];
    }
}

enum Operation { AUTOCONTRAST, BRIGHTNESS, COLOUR, CONTRAST, EQUALISE, IDENTITY, POSTERISE, ROTATE, SHARPNESS, SHEAR_X, SHEAR_Y,
                 SOLARISE, TRANSLATE_X, TRANSLATE_Y };  // FixMatch's fourteen, in the order of operations.py

__device__ __forceinline__ int grey(const u8* p) { return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16; }
__device__ __forceinline__ u8 blend(int start, int end, float factor) {
    const float v = (float)start + factor * (float)(end - start);
    return (u8)fminf(fmaxf(v, 0.f), 255.f);
}
__device__ __forceinline__ int fixed_point(double v) { return (int)floor(v * 65536.0 + 0.5); }

__device__ double amount_of(int operation, int magnitude, bool negative, int height, int width) {
    const double level = magnitude, sign = negative ? -1.0 : 1.0, slope = sign * (level * 0.3 / 10);
    switch (operation) {
        case POSTERISE: return 4 + 4 * magnitude / 10;
        case ROTATE: return sign * (30 * magnitude / 10);
        case SHEAR_X: case SHEAR_Y: return slope;
        case SOLARISE: return 256 - 256 * magnitude / 10;
        case TRANSLATE_X: return trunc(slope * width);
        case TRANSLATE_Y: return trunc(slope * height);
        default: return level * 0.9 / 10 + 0.05;
    }
}

// from → to; `side` is scratch of 768 + 8 integers. Ends with a barrier.
__device__ void apply(int operation, double amount, const u8* from, u8* to, int* side, int height, int width) {
    const int pixels = height * width, t = threadIdx.x;
    const float factor = (float)amount;
    if (operation >= ROTATE && operation != SHARPNESS && operation != SOLARISE) {
        int a = 65536, b = 0, c = 32768, d = 0, e = 65536, f = 32768;
        if (operation == ROTATE) {
            const double angle = amount * (3.141592653589793 / 180), cosine = cos(angle), sine = sin(angle);
            const double x = width / 2.0, y = height / 2.0;
            a = e = fixed_point(cosine), b = fixed_point(-sine), d = fixed_point(sine);
            c = fixed_point(x - (cosine * x - sine * y) + cosine * 0.5 - sine * 0.5);
            f = fixed_point(y - (sine * x + cosine * y) + sine * 0.5 + cosine * 0.5);
        } else if (operation == SHEAR_X) b = fixed_point(amount), c = fixed_point(0.5 + amount * 0.5);
        else if (operation == SHEAR_Y) d = fixed_point(amount), f = fixed_point(amount * 0.5 + 0.5);
        else if (operation == TRANSLATE_X) c = fixed_point(amount + 0.5);
        else f = fixed_point(amount + 0.5);
        for (int p = t; p < pixels; p += blockDim.x) {
            const int x = p % width, y = p / width, column = (a * x + (b * y + c)) >> 16, row = (d * x + (e * y + f)) >> 16;
            const bool inside = row >= 0 && row < height && column >= 0 && column < width;
            for (int k = 0; k < 3; k++) to[p * 3 + k] = inside ? from[(row * width + column) * 3 + k] : 0;
        }
    } else if (operation == AUTOCONTRAST) {
        if (t < 3) side[t] = 255, side[3 + t] = 0;
        __syncthreads();
        int low[3] = {255, 255, 255}, high[3] = {0, 0, 0};
        for (int p = t; p < pixels; p += blockDim.x)
            for (int k = 0; k < 3; k++) low[k] = min(low[k], from[p * 3 + k]), high[k] = max(high[k], from[p * 3 + k]);
        for (int k = 0; k < 3; k++) {
            const int l = __reduce_min_sync(~0u, low[k]), h = __reduce_max_sync(~0u, high[k]);
            if (t % 32 == 0) atomicMin(&side[k], l), atomicMax(&side[3 + k], h);
        }
        __syncthreads();
        for (int i = t; i < pixels * 3; i += blockDim.x) {
            const int l = side[i % 3], h = side[3 + i % 3], v = from[i];
            const double scale = 255.0 / (double)max(h - l, 1), stretched = (double)v * scale - (double)l * scale;
            to[i] = h > l ? (u8)fmin(fmax(stretched, 0.0), 255.0) : v;
        }
    } else if (operation == EQUALISE) {
        for (int i = t; i < 768; i += blockDim.x) side[i] = 0;
        __syncthreads();
        for (int i = t; i < pixels * 3; i += blockDim.x) atomicAdd(&side[i % 3 * 256 + from[i]], 1);
        __syncthreads();
        if (t < 96) {  // one warp a channel: sums below each level, eight levels a lane
            int* count = side + t / 32 * 256;
            const int lane = t % 32;
            int own[8], sum = 0, brightest = -1;
            for (int i = 0; i < 8; i++) {
                own[i] = count[lane * 8 + i];
                if (own[i]) brightest = lane * 8 + i;
                sum += own[i];
            }
            brightest = __reduce_max_sync(~0u, brightest);
            int below = sum;
            for (int d = 1; d < 32; d *= 2) {
                const int other = __shfl_up_sync(~0u, below, d);
                if (lane >= d) below += other;
            }
            below -= sum;
            const int step = (pixels - count[brightest]) / 255;
            __syncwarp();
            for (int i = 0; i < 8; i++) {
                const int v = lane * 8 + i;
                count[v] = step > 0 ? min((step / 2 + below) / step, 255) : v;
                below += own[i];
            }
        }
        __syncthreads();
        for (int i = t; i < pixels * 3; i += blockDim.x) to[i] = (u8)side[i % 3 * 256 + from[i]];
    } else if (operation == CONTRAST) {
        if (t == 0) side[0] = 0;
        __syncthreads();
        int sum = 0;
        for (int p = t; p < pixels; p += blockDim.x) sum += grey(from + p * 3);
        sum = __reduce_add_sync(~0u, sum);
        if (t % 32 == 0) atomicAdd(&side[0], sum);
        __syncthreads();
        const int mean = (2 * side[0] + pixels) / (2 * pixels);
        for (int i = t; i < pixels * 3; i += blockDim.x) to[i] = blend(mean, from[i], factor);
    } else {
        for (int i = t; i < pixels * 3; i += blockDim.x) {
            const int v = from[i], p = i / 3;
            u8 out = v;
            if (operation == BRIGHTNESS) out = blend(0, v, factor);
            else if (operation == COLOUR) out = blend(grey(from + p * 3), v, factor);
            else if (operation == POSTERISE) out = v >> (8 - (int)amount) << (8 - (int)amount);
            else if (operation == SOLARISE) out = (double)v < amount ? v : 255 - v;
            else if (operation == SHARPNESS) {
                const int x = p % width, y = p / width;
                int smooth = v;
                if (x > 0 && y > 0 && x < width - 1 && y < height - 1) {
                    int box = 4 * v;
                    for (int dy = -1; dy <= 1; dy++)
                        for (int dx = -1; dx <= 1; dx++) box += from[i + (dy * width + dx) * 3];
                    smooth = (2 * box + 13) / 26;
                }
                out = blend(smooth, v, factor);
            }
            to[i] = out;
        }
    }
    __syncthreads();
}

extern "C" __global__ void strong_view(const u8* __restrict__ images, const u64* __restrict__ key, u8* __restrict__ views,
                                       int n, int height, int width, int reach, int flip, int turns, int cut) {
    extern __shared__ u8 shared[];
    const int i = blockIdx.x, pixels = height * width, bytes = (pixels * 3 + 15) / 16 * 16;
    u8 *from = shared, *to = shared + bytes;
    int* side = (int*)(shared + 2 * bytes);
    const Shift s = draw_shift(split(*key, 0), i, n, height, width, reach, flip);
    const u8* image = images + (long)i * pixels * 3;
    for (int p = threadIdx.x; p < pixels; p += blockDim.x) {
        const int source = shifted(s, p / width, p % width, height, width);
        for (int c = 0; c < 3; c++) from[p * 3 + c] = image[source * 3 + c];
    }
    __syncthreads();
    for (int turn = 0; turn < turns; turn++) {
        const u64 turn_key = split(split(*key, 1), turn);
        const float choice = uniform(turn_key, i), level = uniform(turn_key, n + i);
        const float sign = uniform(turn_key, 2ull * n + i), chance = uniform(turn_key, 3ull * n + i);
        const int operation = chance < 0.5f ? (int)(choice * 14.f) : IDENTITY;
        if (operation == IDENTITY) continue;
        const int magnitude = 1 + (int)(level * 9.f);
        apply(operation, amount_of(operation, magnitude, sign < 0.5f, height, width), from, to, side, height, width);
        u8* swap = from;
        from = to, to = swap;
    }
    const u64 cut_key = split(*key, 2);
    const int top = (int)(uniform(cut_key, i) * (float)height) - cut / 2;
    const int left = (int)(uniform(cut_key, (u64)n + i) * (float)width) - cut / 2;
    u8* view = views + (long)i * pixels * 3;
    for (int j = threadIdx.x; j < pixels * 3; j += blockDim.x) {
        const int y = j / 3 / width, x = j / 3 % width;
        const bool hidden = y >= top && y < top + cut && x >= left && x < left + cut;
        view[j] = hidden ? 127 : from[j];
    }
}
