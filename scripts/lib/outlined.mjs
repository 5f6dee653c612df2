// Finds intrinsics that became functions, in the map that a linker writes of a library.

/** A function section with its address, as GNU's linker lists it; those that it discarded have the address 0. */
const GNU = /^ \.text\S*?\.(_(?:ZN|R)\S+)\s+0x0*([0-9a-f]+)/gm
/** The same in the maps of LLD and mold, which list only what they placed. */
const LLD = /\(\.text\S*?\.(_(?:ZN|R)[^()\s]+)\)$/gm
/** The begin of a path in `core::core_arch`, in both of Rust's manglings; types in a generic's arguments are none. */
const INTRINSIC = /^(?:_ZN|_RI?(?:N[A-Za-z])+C(?:s[0-9A-Za-z]*_)?)4core(?=9core_arch)/
/** By these std finds out what the processor has. They are calls on purpose, and nobody makes them in a loop. */
const DETECTION = /::(?:_xgetbv|__cpuid\w*)$/

/** `core::core_arch::x86::avx2::_mm256_and_ps` for a mangled name whose begin {@link INTRINSIC} matched. */
function path(mangled, begin) {
  const names = ['core']
  // A name stands after its length. The newer mangling puts an underscore before names that begin with one.
  const length = begin.startsWith('_R') ? /^(?:s[0-9A-Za-z]*_)?(0|[1-9]\d*)_?/ : /^([1-9]\d*)/
  let rest = mangled.slice(begin.length)
  for (let found = length.exec(rest); found; found = length.exec(rest)) {
    const end = found[0].length + Number(found[1])
    names.push(rest.slice(found[0].length, end))
    rest = rest.slice(end)
  }
  return names.filter((name) => !/^(?:|h[0-9a-f]{16})$/.test(name)).join('::')
}

/**
 * What a map tells of the library's code: how many Rust functions it names, and the intrinsics among them, sorted.
 *
 * @param {string} map
 * @returns {{ functions: number, outlined: string[] }}
 */
export function outlined(map) {
  const placed = [...map.matchAll(GNU)].filter(([, , address]) => address !== '0')
  const mangled = [...placed, ...map.matchAll(LLD)].map(([, name]) => name)
  const intrinsics = mangled.flatMap((name) => {
    const begin = INTRINSIC.exec(name)
    return begin ? [path(name, begin[0])] : []
  })
  const calls = new Set(intrinsics.filter((name) => !DETECTION.test(name)))
  return { functions: mangled.length, outlined: [...calls].sort() }
}
