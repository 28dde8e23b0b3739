import { Trending } from "./trending";
import { Viewers } from "./viewers";

// A page may load the script twice.
if (!customElements.get("tidemark-trending")) customElements.define("tidemark-trending", Trending);
if (!customElements.get("tidemark-viewers")) customElements.define("tidemark-viewers", Viewers);
