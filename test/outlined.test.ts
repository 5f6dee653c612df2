import { expect, it } from 'vitest'
import { outlined } from '../scripts/lib/outlined.mjs'

// Excerpts of maps: of LLD, with its symbols' lines, and of GNU's linker, which breaks lines after long names.
const LLD = `\
             VMA              LMA     Size Align Out     In      Symbol
           1e940            1e940       10     4         aquila-cgu.0.o:(.rodata._ZN4core9core_arch3x864avx25TABLE17h01db3fd2553342c2E)
          433d00           433d00       d5    16         aquila-cgu.3.o:(.text._ZN6aquila7kernels8postings4avx24walk17h0a1b2c3d4e5f6071E)
          433d00           433d00       d5     1                 aquila::kernels::postings::avx2::walk::h0a1b2c3d4e5f6071
          433de0           433de0       1c    16         aquila-cgu.3.o:(.text._RINvCs1_6aquila4copyNtNtNtCsgEmfK2I1SDS_4core9core_arch3x867___m256iEB0_)
          63a600           63a600      68a    16         std_detect-cgu.0.o:(.text.unlikely._RNvNtNtCs6d7GoaNTBIz_10std_detect6detect5cache21detect_and_initialize)
          63ac90           63ac90        d    16         std_detect-cgu.0.o:(.text._RNvNtNtNtCsgEmfK2I1SDS_4core9core_arch3x865xsave7__xgetbv)
          63aca0           63aca0       1d    16         std_detect-cgu.0.o:(.text._ZN4core9core_arch3x865cpuid13__cpuid_count17h9baa17896bfdf293E)
`
const LLD_CALLS = `\
          433e00           433e00        c    16         aquila-cgu.3.o:(.text._RNvNtNtNtCsgEmfK2I1SDS_4core9core_arch3x863avx13__mm256_and_ps)
          433e00           433e00        c     1                 core::core_arch::x86::avx::_mm256_and_ps
          433e10           433e10       1c    16         aquila-cgu.3.o:(.text.unlikely._RINvNtNtNtCsgEmfK2I1SDS_4core9core_arch3x864avx217__mm256_srai_epi32Kl1f_EB0_)
          433e30           433e30        c    16         aquila-cgu.2.o:(.text._RNvNtNtNtCsgEmfK2I1SDS_4core9core_arch3x863avx13__mm256_and_ps)
`
const GNU = `\
Discarded input sections

 .text._ZN4core9core_arch3x863avx13_mm256_and_ps17h0a1b2c3d4e5f6071E
                0x0000000000000000        0xc aquila-cgu.3.o

Linker script and memory map

 *(.text .stub .text.*)
 .text._ZN6aquila7kernels8postings4avx24walk17h0a1b2c3d4e5f6071E
                0x0000000000043d00       0xd5 aquila-cgu.3.o
`
const GNU_CALLS = `\
 .text._ZN4core9core_arch10arm_shared4neon9generated9vaddq_f3217h0a1b2c3d4e5f6072E
                0x0000000000043e00        0xc aquila-cgu.3.o
`

it('takes what std detects the processor with for no defect, nor types among arguments, nor what was discarded', () => {
  expect(outlined(LLD)).toEqual({ functions: 5, outlined: [] })
  expect(outlined(GNU)).toEqual({ functions: 1, outlined: [] })
})

it('names intrinsics that are functions, each once', () => {
  expect(outlined(LLD + LLD_CALLS)).toEqual({
    functions: 8,
    outlined: ['core::core_arch::x86::avx2::_mm256_srai_epi32', 'core::core_arch::x86::avx::_mm256_and_ps'],
  })
  expect(outlined(GNU + GNU_CALLS).outlined).toEqual([
    'core::core_arch::arm_shared::neon::generated::vaddq_f32',
  ])
})

it('finds no functions in a text that is no map', () => {
  expect(outlined('').functions).toBe(0)
})
