export const listingLink = (id: string): string => `/market?listing=${encodeURIComponent(id)}`
export const contractLink = (id: string): string => `/market?contract=${encodeURIComponent(id)}`

export const Path = () => <a href="/market">Market</a>
