"""All that is said to S3 by boto3; lakes elsewhere do without it."""

from firnline.extras import require

require("s3", "a bucket on S3")
