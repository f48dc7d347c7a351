/*
 * vector.c: SSE, AVX and AVX-512 of x86-64; nothing elsewhere.
 *
 * XSAVES leaves out what was not written since it was last loaded (Intel SDM, volume 1, 13.6), so
 * whoever wants to see the state saved has to write the registers before each change of process.
 * The upper parts then count as used until something executes vzeroupper: the memcpy of a libc
 * does, read() and write() do not.
 */
#include "vector.h"

#include "die.h"

static void fill_nothing(void)
{
}

#ifdef __x86_64__

#define LOW  "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define HIGH "16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define LOW_CLOBBERED                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define HIGH_CLOBBERED                                                                             \
    "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",      \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

/* All ones in each: zeros might be left out again as the state a register begins with. */
static void fill_sse(void)
{
    __asm__ volatile(".irp n," LOW "\n\t"
                     "pcmpeqd %%xmm\\n, %%xmm\\n\n\t"
                     ".endr"
                     :
                     :
                     : LOW_CLOBBERED);
}

__attribute__((target("avx"))) static void fill_avx(void)
{
    __asm__ volatile(".irp n," LOW "\n\t"
                     "vcmptrueps %%ymm0, %%ymm0, %%ymm\\n\n\t"
                     ".endr"
                     :
                     :
                     : LOW_CLOBBERED);
}

__attribute__((target("avx512f"))) static void fill_avx512(void)
{
    __asm__ volatile(".irp n," LOW "," HIGH "\n\t"
                     "vpternlogd $0xff, %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
                     ".endr"
                     :
                     :
                     : LOW_CLOBBERED, HIGH_CLOBBERED);
}

vector_fill_fn vector_fill_of(size_t bytes)
{
    __builtin_cpu_init();
    if (bytes == 0)
        return fill_nothing;
    if (bytes == 16)
        return fill_sse;
    if (bytes == 32 && __builtin_cpu_supports("avx"))
        return fill_avx;
    if (bytes == 64 && __builtin_cpu_supports("avx512f"))
        return fill_avx512;
    die(EXIT_UNSUPPORTED, "this processor has no vector registers of %lu bytes",
        (unsigned long)bytes);
}

#else

vector_fill_fn vector_fill_of(size_t bytes)
{
    if (bytes != 0)
        die(EXIT_UNSUPPORTED, "the vector registers are filled by instructions of x86-64 only");
    return fill_nothing;
}

#endif
