import { visible } from '../../ui/text.tsx'

export const listingLink = (id: string): string => `/market?listing=${encodeURIComponent(id)}`
export const dealLink = (id: string): string => `/market?deal=${encodeURIComponent(id)}`

export const AccountLink = ({ id }: { id: string }) => <a href={`/market?account=${encodeURIComponent(id)}`}>{visible(id)}</a>
export const Path = () => <a href="/market">Market</a>
