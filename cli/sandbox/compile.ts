/** The Workers' types have no constructor that takes bytes, because Workers refuse it. */
export const compile = (bytes: Uint8Array): WebAssembly.Module =>
  new (WebAssembly.Module as unknown as new (bytes: Uint8Array) => WebAssembly.Module)(bytes)
