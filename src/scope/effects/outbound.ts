// As a method of another object, `fetch` itself refuses to be called.
export const outbound: typeof fetch = (input, init) => fetch(input, init)
