type Lookup = { name: string; secret: (name: string) => string | undefined }

/** The values of headers that hold secrets. Throws where one is not set or can be no header, and never says what it holds. */
export function secretValues(secret_headers: Readonly<Record<string, string>>, { name, secret }: Lookup): Record<string, string> {
  return Object.fromEntries(
    Object.entries(secret_headers).map(([header, key]) => {
      const value = secret(key)
      if (value === undefined || value === '') throw new Error(`${name} needs the secret ${key}, which is not set`)
      // The runtime's own error would quote it.
      if (!/^[\t\u0020-\u007E]+$/.test(value)) throw new Error(`${name} needs the secret ${key}, which holds what no header may hold`)
      return [header, value]
    }),
  )
}
