// Weak and strong views, one block an image, the image in shared memory from first to last operation.
// Draws the same numbers and does the same arithmetic as the tensor code beside it (weak.py, randaugment.py, ctaugment.py,
// operations.py, affine.py, tables.py, pixels.py, rescale.py), which is the reference; compiled without contraction, so
// products and sums round alike.
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
                 SOLARISE, TRANSLATE_X, TRANSLATE_Y,  // FixMatch's fourteen, in the order of operations.py
                 BLUR, INVERT, SMOOTH, CUTOUT, RESCALE };  // and what CTAugment has beyond them, in the order of ctaugment.py

__device__ __forceinline__ int grey(const u8* p) { return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16; }
__device__ __forceinline__ u8 blend(int start, int end, float factor) {
    const float v = (float)start + factor * (float)(end - start);
    return (u8)fminf(fmaxf(v, 0.f), 255.f);
}
__device__ __forceinline__ int fixed_point(double v) { return (int)floor(v * 65536.0 + 0.5); }

__device__ double amount_of(int operation, int magnitude, bool negative, int height, int width) {
    const double level = magnitude, sign = negative ? -1.0 : 1.0, slope = sign * (level * 0.3 / 10);
    switch (operation) {
        case AUTOCONTRAST: case EQUALISE: return 1;
        case POSTERISE: return 4 + 4 * magnitude / 10;
        case ROTATE: return sign * (30 * magnitude / 10);
        case SHEAR_X: case SHEAR_Y: return slope;
        case SOLARISE: return 256 - 256 * magnitude / 10;
        case TRANSLATE_X: return trunc(slope * width);
        case TRANSLATE_Y: return trunc(slope * height);
        default: return level * 0.9 / 10 + 0.05;
    }
}

// The pixel's mean with its neighbours, five times as heavy itself; on the border the pixel itself.
__device__ __forceinline__ int smoothed(const u8* from, int i, int y, int x, int height, int width) {
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return from[i];
    int box = 4 * from[i];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) box += from[i + (dy * width + dx) * 3];
    return (2 * box + 13) / 26;
}
// The mean of the sixteen pixels two steps away; on the border, two pixels wide, the pixel itself.
__device__ __forceinline__ int blurred(const u8* from, int i, int y, int x, int height, int width) {
    if (x < 2 || y < 2 || x >= width - 2 || y >= height - 2) return from[i];
    int rim = 8;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++)
            if (abs(dy) == 2 || abs(dx) == 2) rim += from[i + (dy * width + dx) * 3];
    return rim >> 4;
}

// from → to; `side` is scratch of 768 + 8 integers. Ends with a barrier.
__device__ void apply(int operation, double amount, const u8* from, u8* to, int* side, int height, int width) {
    const int pixels = height * width, t = threadIdx.x;
    const float factor = (float)amount;
    if (operation == ROTATE || operation == SHEAR_X || operation == SHEAR_Y || operation == TRANSLATE_X ||
        operation == TRANSLATE_Y) {
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
            to[i] = blend(v, h > l ? (int)fmin(fmax(stretched, 0.0), 255.0) : v, factor);
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
        for (int i = t; i < pixels * 3; i += blockDim.x) to[i] = blend(from[i], side[i % 3 * 256 + from[i]], factor);
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
            const int v = from[i], p = i / 3, x = p % width, y = p / width;
            u8 out = v;
            if (operation == BRIGHTNESS) out = blend(0, v, factor);
            else if (operation == COLOUR) out = blend(grey(from + p * 3), v, factor);
            else if (operation == POSTERISE) out = v >> (8 - (int)amount) << (8 - (int)amount);
            else if (operation == SOLARISE) out = (double)v < amount ? v : 255 - v;
            else if (operation == SHARPNESS) out = blend(smoothed(from, i, y, x, height, width), v, factor);
            else if (operation == SMOOTH) out = blend(v, smoothed(from, i, y, x, height, width), factor);
            else if (operation == BLUR) out = blend(v, blurred(from, i, y, x, height, width), factor);
            else if (operation == INVERT) out = blend(v, 255 - v, factor);
            to[i] = out;
        }
    }
    __syncthreads();
}

// Writes the image, but for a grey square of side `cut`.
__device__ void cut_out(const u8* image, u8* view, u64 key, int i, int n, int height, int width, int cut) {
    const int top = (int)(uniform(key, i) * (float)height) - cut / 2;
    const int left = (int)(uniform(key, (u64)n + i) * (float)width) - cut / 2;
    for (int j = threadIdx.x; j < height * width * 3; j += blockDim.x) {
        const int y = j / 3 / width, x = j / 3 % width;
        const bool hidden = y >= top && y < top + cut && x >= left && x < left + cut;
        view[j] = hidden ? 127 : image[j];
    }
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
    cut_out(from, views + (long)i * pixels * 3, split(*key, 2), i, n, height, width, cut);
}

// What a level in [0, 1) means to an operation of CTAugment.
__device__ double meaning_of(int operation, double level) {
    const double centred = 2 * level - 1, slope = centred * 0.3, enhance = 0.1 + 1.9 * level;
    switch (operation) {
        case BRIGHTNESS: case COLOUR: case CONTRAST: case SHARPNESS: return enhance;
        case POSTERISE: return 1 + trunc(level * 7.999);
        case ROTATE: return rint(centred * 45);
        case SHEAR_X: case SHEAR_Y: case TRANSLATE_X: case TRANSLATE_Y: return slope;
        case SOLARISE: return trunc(level * 255.999);
        default: return level;
    }
}

enum Method { LANCZOS, BICUBIC, BILINEAR, BOX, HAMMING, NEAREST };  // in the order of rescale.py

__device__ double sinc(double x) {
    x *= 3.141592653589793;
    return x == 0 ? 1 : sin(x) / x;
}
__device__ double filter(int method, double distance) {
    const double x = fabs(distance);
    switch (method) {
        case LANCZOS: return distance >= -3 && distance < 3 ? sinc(distance) * sinc(distance / 3) : 0;
        case BICUBIC: return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
        case BILINEAR: return x < 1 ? 1 - x : 0;
        case BOX: return distance > -0.5 && distance <= 0.5 ? 1 : 0;
        default:  // Pillow writes Hamming's two numbers as C floats
            return x < 1 ? sinc(x) * ((double)0.54f + (double)0.46f * cos(x * 3.141592653589793)) : 0;
    }
}

// Where each of `length` pixels gets its value from when [begin, end) is stretched over all of them: the first of up to
// TAPS − 1 pixels, which no filter reaches beyond, and their weights in 22 bits.
#define TAPS 8
__device__ void weigh(int* taps, int method, int begin, int end, int length) {
    const double scale = (double)(end - begin) / (double)length;
    for (int target = threadIdx.x; target < length; target += blockDim.x) {
        int* tap = taps + target * TAPS;
        double weights[TAPS - 1], sum = 0;
        if (method == NEAREST) {
            double at = scale * 0.5;  // added up one by one, as Pillow does
            for (int i = 0; i < target; i++) at += scale;
            tap[0] = begin + (int)floor(at);
            for (int k = 0; k < TAPS - 1; k++) tap[1 + k] = k == 0 ? 1 << 22 : 0;
            continue;
        }
        const double centre = (target + 0.5) * scale;
        const int first = max(0, (int)floor(centre) - 3);
        for (int k = 0; k < TAPS - 1; k++) {
            const bool inside = first + k < end - begin;
            weights[k] = inside ? filter(method, (double)(first + k) - centre + 0.5) : 0;
            sum += weights[k];
        }
        tap[0] = begin + first;
        for (int k = 0; k < TAPS - 1; k++) {
            const double share = weights[k] / fmax(sum, 1e-30);
            tap[1 + k] = (int)trunc(share * 4194304.0 + (share < 0 ? -0.5 : 0.5));
        }
    }
    __syncthreads();
}
__device__ __forceinline__ u8 weighed(const int* tap, const u8* pixels, int stride) {
    int total = 1 << 21;
    for (int k = 0; k < TAPS - 1; k++)
        if (tap[1 + k]) total += tap[1 + k] * pixels[(tap[0] + k) * stride];
    return (u8)min(max(total >> 22, 0), 255);
}

// Rows by way of `between`, then columns back into `image`; `taps` is scratch of TAPS integers for each pixel of a side.
__device__ void rescale(u8* image, u8* between, int* taps, double share, int method, int height, int width) {
    const int bytes = height * width * 3;
    weigh(taps, method, (int)rint(share * width), (int)rint(width * (1 - share)), width);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) {
        const int c = i % 3, x = i / 3 % width, y = i / 3 / width;
        between[i] = weighed(taps + x * TAPS, image + y * width * 3 + c, 3);
    }
    __syncthreads();
    weigh(taps, method, (int)rint(share * height), (int)rint(height * (1 - share)), height);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) {
        const int y = i / 3 / width;
        image[i] = weighed(taps + y * TAPS, between + i - y * width * 3, width * 3);
    }
    __syncthreads();
}

extern "C" __global__ void carry_out(const u8* __restrict__ images, const long long* __restrict__ operations,
                                     const double* __restrict__ levels, const double* __restrict__ methods,
                                     const u64* __restrict__ key, u8* __restrict__ views, int n, int height, int width) {
    extern __shared__ u8 shared[];
    const int i = blockIdx.x, pixels = height * width, bytes = (pixels * 3 + 15) / 16 * 16;
    u8 *from = shared, *to = shared + bytes;
    int* side = (int*)(shared + 2 * bytes);
    const u8* image = images + (long)i * pixels * 3;
    for (int j = threadIdx.x; j < pixels * 3; j += blockDim.x) from[j] = image[j];
    __syncthreads();
    const int operation = (int)operations[i];
    const double level = levels[i];
    if (operation == RESCALE) rescale(from, to, side, level * 0.25, (int)(methods[i] * 5.99), height, width);
    else if (operation != IDENTITY && operation != CUTOUT) {
        apply(operation, meaning_of(operation, level), from, to, side, height, width);
        from = to;
    }
    const int half = (1 + (int)(level * (min(height, width) * 0.499))) / 2;
    cut_out(from, views + (long)i * pixels * 3, *key, i, n, height, width, operation == CUTOUT ? 2 * half : 0);
}
